/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/visits.h"

#include "base/clock.h"

#define PPM           1000000u
#define CREDIT_NS     (2 * NS_PER_MS)   /* the most that is saved up */
#define SWITCHES_NS   (5 * NS_PER_US)   /* what the kernel takes for coming and going */
#define WAIT_NS       (1 * NS_PER_MS)   /* shorter waits do no harm */
#define WAITS         3u                /* so many in a row do */
#define WAIT_MOST_NS  (100 * NS_PER_MS) /* one of these does, as behind a real-time program */
#define AWAY_NS       (100 * NS_PER_MS) /* the first time; doubled each time … */
#define AWAY_MOST_NS  (3200 * NS_PER_MS) /* … up to this, until all went well for so long; … */
#define AWAY_LONG_NS  (16 * NS_PER_S)   /* … and after a wait of WAIT_MOST_NS */

void visits_begin(struct visits *v, uint32_t budget_ppm)
{
	v->budget_ppm = budget_ppm;
}

/* Adds what was earned since. */
static struct visit_cpu *earn(struct visits *v, int cpu, uint64_t now_ns)
{
	struct visit_cpu *c = &v->cpus[cpu];
	uint64_t since_ns = now_ns > c->t_ns ? now_ns - c->t_ns : 0;

	if (c->t_ns == 0 || since_ns > NS_PER_S)
		c->credit_ns = (int64_t)CREDIT_NS;
	else
		c->credit_ns += (int64_t)(since_ns * v->budget_ppm / PPM);
	if (c->credit_ns > (int64_t)CREDIT_NS)
		c->credit_ns = (int64_t)CREDIT_NS;
	if (now_ns > c->t_ns)
		c->t_ns = now_ns;
	return c;
}

static bool is_cpu(int cpu)
{
	return cpu >= 0 && cpu < CPU_SETSIZE;
}

bool visits_allowed(struct visits *v, int cpu, uint64_t now_ns)
{
	return v->budget_ppm > 0 && is_cpu(cpu) && now_ns >= v->cpus[cpu].until_ns && earn(v, cpu, now_ns)->credit_ns > 0;
}

bool visits_have_plenty(struct visits *v, int cpu, uint64_t now_ns)
{
	return is_cpu(cpu) && earn(v, cpu, now_ns)->credit_ns > (int64_t)(CREDIT_NS / 2);
}

void visits_spend(struct visits *v, int cpu, uint64_t took_ns, uint64_t now_ns)
{
	if (is_cpu(cpu))
		earn(v, cpu, now_ns)->credit_ns -= (int64_t)(took_ns + SWITCHES_NS);
}

static uint64_t next_away_ns(const struct visit_cpu *c, uint64_t waited_ns, uint64_t now_ns)
{
	if (waited_ns >= WAIT_MOST_NS)
		return AWAY_LONG_NS;
	if (c->away_ns == 0 || c->away_ns > AWAY_MOST_NS || now_ns > c->until_ns + AWAY_MOST_NS)
		return AWAY_NS;
	return c->away_ns < AWAY_MOST_NS ? 2 * c->away_ns : AWAY_MOST_NS;
}

bool visits_waited(struct visits *v, int cpu, uint64_t waited_ns, uint64_t most_ns, uint64_t now_ns)
{
	struct visit_cpu *c;

	if (!is_cpu(cpu))
		return true;
	c = &v->cpus[cpu];
	c->waits = waited_ns > WAIT_NS && waited_ns > most_ns ? c->waits + 1 : 0;
	if (c->waits < WAITS && waited_ns < WAIT_MOST_NS)
		return true;
	c->away_ns = next_away_ns(c, waited_ns, now_ns);
	c->until_ns = now_ns + c->away_ns;
	c->waits = 0;
	return false;
}
