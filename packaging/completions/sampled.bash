# SPDX-License-Identifier: Apache-2.0
# bash completion for sampled(1). Commands, options and formats are what the program's own --help says.

_sampled_pids()
{
	local file name
	for file in /proc/[0-9]*/comm; do
		{ read -r name <"$file"; } 2>/dev/null || continue
		case $name in
		python* | uwsgi* | gunicorn* | celery* | uvicorn* | ipython* | jupyter*) file=${file#/proc/} && echo "${file%/comm}" ;;
		esac
	done
}

_sampled_options()
{
	"$1" help "$2" 2>/dev/null | sed -nE 's/^ +(-[a-zA-Z], )?--/--/p' | grep -oE -- '--[a-z][a-z-]+' | sort -u
}

_sampled_formats()
{
	"$1" --help 2>/dev/null | sed -n 's/^Formats: \(.*\)\. Python.*/\1/p'
}

_sampled()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
	local words=

	if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
		words=$("$program" --help 2>/dev/null | sed -nE 's/^  sampled ([a-z]+).*/\1/p' | sort -u)
		[ "$COMP_CWORD" -eq 1 ] && words="$words help version --help --version"
	elif [ "$previous" = -f ] || [ "$previous" = --format ]; then
		words=$(_sampled_formats "$program")
	elif [ "$previous" = --mode ]; then
		words='wall cpu gil exception'
	elif [ "${current#-}" != "$current" ]; then
		words=$(_sampled_options "$program" "$command")
	elif [ "$command" = ctl ] && [ "$COMP_CWORD" -eq 2 ]; then
		words='status list attach detach dump reload'
	else
		case $command in
		attach | dump | doctor | top | ctl) words=$(_sampled_pids) ;;
		esac
	fi
	# shellcheck disable=SC2207 # words without blanks
	COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -o bashdefault -o default -F _sampled sampled
