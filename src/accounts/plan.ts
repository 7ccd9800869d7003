import { DAY, MINUTE, SECOND } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'

/** What an account may do: how often it asks, and how much. */
export type Plan = {
  readonly name: string
  /** Requests that a key may make in `perMs`. */
  readonly requests: number
  readonly perMs: number
  /** Verifications a day, counted in credits; null: any number. */
  readonly creditsPerDay: number | null
  /** Lists that may be queued or processing at the same time, live and sandbox together; null: any number. */
  readonly concurrentJobs: number | null
  /** Rows of all jobs that may be stored, live and sandbox together; null: any number. */
  readonly storedRows: number | null
}

/**
 * The plans of the service, as it states them; the config file may change them and add others. Each lets the ten
 * lists that one IP address may submit in an hour be open at once. A stored row takes about 2 KB with its result and
 * its history: free has room for the two largest batches (200 MB), starter for the two largest files (4 GB).
 */
export const PLANS: readonly Plan[] = [
  {
    ...{ name: 'free', requests: 10, perMs: MINUTE, creditsPerDay: 100 },
    ...{ concurrentJobs: 10, storedRows: 100_000 },
  },
  {
    ...{ name: 'starter', requests: 10, perMs: SECOND, creditsPerDay: null },
    ...{ concurrentJobs: 20, storedRows: 2_000_000 },
  },
  {
    ...{ name: 'professional', requests: 50, perMs: SECOND, creditsPerDay: null },
    ...{ concurrentJobs: 50, storedRows: 10_000_000 },
  },
  {
    ...{ name: 'enterprise', requests: 500, perMs: SECOND, creditsPerDay: null },
    ...{ concurrentJobs: 200, storedRows: 100_000_000 },
  },
]

/** What the config file says of a plan. */
export type CustomPlan = Partial<Omit<Plan, 'name'>>

/**
 * The plans by name, with what the config file says of them: of a plan of the service it changes what it names, a
 * plan of another name it adds. `perMs` is a minute and everything else is without limit where a new one does not say.
 */
export function mergePlans(own: Readonly<Record<string, CustomPlan>>): ReadonlyMap<string, Plan> {
  const plans = new Map(PLANS.map(plan => [plan.name, plan]))
  for (const [name, said] of Object.entries(own)) {
    const usual = plans.get(name) ?? { name, ...UNLIMITED }
    const plan = { ...usual, ...said }
    if (plan.requests === undefined) {
      throw new EvError(
        'bad_config',
        `The plan “${name}” does not say how many requests it allows: give it "requests", such as {"requests": 100, "per": "minute"}.`,
      )
    }
    plans.set(name, { ...plan, requests: plan.requests })
  }
  return plans
}

const UNLIMITED = { perMs: MINUTE, creditsPerDay: null, concurrentJobs: null, storedRows: null }

/** The plan of that name. An account whose plan was taken out of the config file has the least one until it is given another. */
export const findPlan = (plans: ReadonlyMap<string, Plan>, name: string): Plan =>
  plans.get(name) ?? plans.get(LEAST.name) ?? LEAST

const LEAST = PLANS[0] as Plan

/** Limits that hold for each client address, whatever the plan. */
export type IpLimits = {
  readonly singlePerMinute: number
  readonly bulkPerHour: number
}

export const IP_LIMITS: IpLimits = { singlePerMinute: 100, bulkPerHour: 10 }

/** The day that a time lies in, UTC, epoch ms: credits are counted by it. */
export const periodStart = (now: number) => now - (now % DAY)

/** When these credits are given anew. */
export const periodEnd = (now: number) => periodStart(now) + DAY
