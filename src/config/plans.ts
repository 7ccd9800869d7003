import { objectOf, readFields, textOf } from './fields.ts'
import { Expected, integer, oneOf, word } from './values.ts'

/** What the config file says of one plan; what it leaves out stays as it is without. */
export type PlanConfig = {
  readonly requests?: number
  readonly perMs?: number
  /** Null: any number. */
  readonly creditsPerDay?: number | null
  /** Null: any number. */
  readonly concurrentJobs?: number | null
  /** Null: any number. */
  readonly storedRows?: number | null
}

/** What the config file says of the limits for each client address. */
export type IpLimitsConfig = {
  readonly singlePerMinute?: number
  readonly bulkPerHour?: number
}

/** More than any machine answers. */
const REQUESTS_MAX = 1_000_000
const CREDITS_MAX = 1_000_000_000
const JOBS_MAX = 1_000_000
const ROWS_MAX = 1_000_000_000_000

/** The plans of the config file, by name. Throws Expected. */
export function readPlans(given: unknown): Readonly<Record<string, PlanConfig>> {
  if (given === undefined) return {}
  const all = Object.entries(objectOf(given)).map(([name, said]) => {
    try {
      return [word(name), readPlan(said)] as const
    } catch (error) {
      if (!(error instanceof Expected)) throw error
      throw new Expected(`for "${name}" ${error.message}`)
    }
  })
  return Object.freeze(Object.fromEntries(all))
}

const PER_MS = { second: 1_000, minute: 60_000 } as const

function readPlan(given: unknown): PlanConfig {
  const { per, ...rest } = readFields<Required<Omit<PlanConfig, 'perMs'>> & { per: number }>(
    given,
    {
      requests: value => integer(1, REQUESTS_MAX)(textOf(value)),
      per: value => PER_MS[oneOf<keyof typeof PER_MS>(['second', 'minute'])(textOf(value))],
      creditsPerDay: orUnlimited(CREDITS_MAX),
      concurrentJobs: orUnlimited(JOBS_MAX),
      storedRows: orUnlimited(ROWS_MAX),
    },
  )
  return Object.freeze({ ...rest, ...(per === undefined ? {} : { perMs: per }) })
}

/** A number, or null for any number. */
const orUnlimited = (max: number) => (value: unknown) =>
  value === null ? null : integer(1, max)(textOf(value))

/** The limits of the config file for each client address. Throws Expected. */
export function readIpLimits(given: unknown): IpLimitsConfig {
  if (given === undefined) return {}
  const limit = (value: unknown) => integer(1, REQUESTS_MAX)(textOf(value))
  return Object.freeze(
    readFields<Required<IpLimitsConfig>>(given, { singlePerMinute: limit, bulkPerHour: limit }),
  )
}
