# SPDX-License-Identifier: Apache-2.0
# fish completion for sampled(1). Commands, options and formats are what the program's own --help says.

function __sampled_commands
    sampled --help 2>/dev/null | sed -nE 's/^  sampled ([a-z]+).*/\1/p' | sort -u
end

function __sampled_command_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

function __sampled_options
    set -l words (commandline -opc)
    test (count $words) -ge 2; or return
    sampled help $words[2] 2>/dev/null | sed -nE 's/^ +(-[a-zA-Z], )?--/--/p' | grep -oE -- '--[a-z][a-z-]+' | sort -u
end

function __sampled_formats
    sampled --help 2>/dev/null | sed -n 's/^Formats: \(.*\)\. Python.*/\1/p' | string split ' '
end

function __sampled_pids
    for file in /proc/*/comm
        set -l name (cat $file 2>/dev/null); or continue
        string match -qr '^(python|uwsgi|gunicorn|celery|uvicorn|ipython|jupyter)' -- $name
        and printf '%s\t%s\n' (string split / -- $file)[3] $name
    end
end

complete -c sampled -n __fish_use_subcommand -f -a '(__sampled_commands) help version'
complete -c sampled -n '__sampled_command_is help' -f -a '(__sampled_commands)'
complete -c sampled -n '__sampled_command_is attach dump doctor top' -f -a '(__sampled_pids)'
complete -c sampled -n '__sampled_command_is ctl' -f -a 'status list attach detach dump reload (__sampled_pids)'
complete -c sampled -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__sampled_options)'
complete -c sampled -s f -l format -x -a '(__sampled_formats)'
complete -c sampled -l mode -x -a 'wall cpu gil exception'
complete -c sampled -s o -l output -r
