import { DAY, MINUTE, SECOND } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'

/** The limits of an account. */
export type Plan = {
  readonly name: string
  /** Requests that the keys of an account may send together in `perMs`. */
  readonly requests: number
  readonly perMs: number
  /** Credits per day; null: unlimited. */
  readonly creditsPerDay: number | null
  /**
   * Lists that may be queued or processing at the same time, live and sandbox together; null:
   * unlimited.
   */
  readonly concurrentJobs: number | null
  /** Stored rows of all jobs, live and sandbox together; null: unlimited. */
  readonly storedRows: number | null
  /** Stored pieces of feedback; null: unlimited. */
  readonly storedFeedback: number | null
  /** API keys that are not revoked, at most `KEYS_MAX`; null: that maximum. */
  readonly keys: number | null
}

/** Maximum keys of an account: enough for one per application; more come from a faulty script. */
export const KEYS_MAX = 500

/**
 * The built-in plans; the config file can change them and add others. Each allows the ten lists
 * that one IP address may submit in an hour to be open at once. A stored row takes about 2 KB with
 * its result and its history: `free` has room for the two largest batches (200 MB), `starter` for
 * the two largest files (4 GB). A piece of feedback takes about 1 KB with the state of its address,
 * and reports about every stored row fit.
 */
export const PLANS: readonly Plan[] = [
  {
    name: 'free',
    requests: 10,
    perMs: MINUTE,
    creditsPerDay: 100,
    concurrentJobs: 10,
    storedRows: 100_000,
    storedFeedback: 100_000,
    keys: 10,
  },
  {
    name: 'starter',
    requests: 10,
    perMs: SECOND,
    creditsPerDay: null,
    concurrentJobs: 20,
    storedRows: 2_000_000,
    storedFeedback: 2_000_000,
    keys: 50,
  },
  {
    name: 'professional',
    requests: 50,
    perMs: SECOND,
    creditsPerDay: null,
    concurrentJobs: 50,
    storedRows: 10_000_000,
    storedFeedback: 10_000_000,
    keys: 200,
  },
  {
    name: 'enterprise',
    requests: 500,
    perMs: SECOND,
    creditsPerDay: null,
    concurrentJobs: 200,
    storedRows: 100_000_000,
    storedFeedback: 100_000_000,
    keys: KEYS_MAX,
  },
]

/** A plan in the config file. */
type CustomPlan = Partial<Omit<Plan, 'name'>>

/**
 * Returns the plans by name. A plan of the config file overrides the fields of the built-in plan
 * with the same name, or adds a new plan. In a new plan `perMs` defaults to a minute and all other
 * limits to unlimited.
 */
export function mergePlans(
  custom: Readonly<Record<string, CustomPlan>>,
): ReadonlyMap<string, Plan> {
  const plans = new Map(PLANS.map(plan => [plan.name, plan]))
  for (const [name, overrides] of Object.entries(custom)) {
    const defaults = plans.get(name) ?? { name, ...UNLIMITED }
    const plan = { ...defaults, ...overrides }
    if (plan.requests === undefined) {
      throw new EvError(
        'bad_config',
        `The plan "${name}" has no request limit. Set "requests", for example {"requests": 100, "per": "minute"}.`,
      )
    }
    plans.set(name, { ...plan, requests: plan.requests })
  }
  return plans
}

const UNLIMITED = {
  perMs: MINUTE,
  creditsPerDay: null,
  concurrentJobs: null,
  storedRows: null,
  storedFeedback: null,
  keys: null,
}

/** Whether a plan allows more of anything than another one. */
export function exceedsPlan(plan: Plan, limit: Plan): boolean {
  const isAbove = (name: PlanLimit) => (plan[name] ?? Infinity) > (limit[name] ?? Infinity)
  return plan.requests / plan.perMs > limit.requests / limit.perMs || PLAN_LIMITS.some(isAbove)
}

const PLAN_LIMITS = [
  'creditsPerDay',
  'concurrentJobs',
  'storedRows',
  'storedFeedback',
  'keys',
] as const satisfies readonly (keyof Plan)[]

type PlanLimit = (typeof PLAN_LIMITS)[number]

/** Returns the plan with this name, or the smallest plan if the config file no longer has it. */
export const findPlan = (plans: ReadonlyMap<string, Plan>, name: string): Plan =>
  plans.get(name) ?? plans.get(LEAST.name) ?? LEAST

const LEAST = PLANS[0] as Plan

/** Whether a plan is the one for trials, which every limit of the specification applies to. */
export const isFreePlan = ({ name }: Plan): boolean => name === LEAST.name

/** Limits that hold for each client address, whatever the plan. */
export type IpLimits = {
  readonly singlePerMinute: number
  readonly bulkPerHour: number
  /** Verifications for forms. */
  readonly formPerMinute: number
}

/**
 * A visitor sends one request for each address that they enter; an office with one address may have
 * several visitors.
 */
const FORM_PER_MINUTE = 30

export const IP_LIMITS: IpLimits = {
  singlePerMinute: 100,
  bulkPerHour: 10,
  formPerMinute: FORM_PER_MINUTE,
}

/** Start of the credit period of a time: midnight UTC, epoch ms. */
export const periodStart = (now: number) => now - (now % DAY)

/** End of the credit period of a time, epoch ms, when the credits reset. */
export const periodEnd = (now: number) => periodStart(now) + DAY
