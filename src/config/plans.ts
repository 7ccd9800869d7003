import { MINUTE, SECOND } from '../base/clock.ts'
import { orNull, readByName, readFields } from './fields.ts'
import { integer, oneOf } from './values.ts'

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
export const readPlans = (given: unknown): Readonly<Record<string, PlanConfig>> =>
  readByName(given, readPlan)

const PER_MS = { second: SECOND, minute: MINUTE } as const

function readPlan(given: unknown): PlanConfig {
  const { per, ...rest } = readFields<Required<Omit<PlanConfig, 'perMs'>> & { per: Per }>(given, {
    requests: integer(1, REQUESTS_MAX),
    per: oneOf('second', 'minute'),
    creditsPerDay: orNull(integer(1, CREDITS_MAX)),
    concurrentJobs: orNull(integer(1, JOBS_MAX)),
    storedRows: orNull(integer(1, ROWS_MAX)),
  })
  return { ...rest, ...(per === undefined ? {} : { perMs: PER_MS[per] }) }
}

type Per = keyof typeof PER_MS

/** The limits of the config file for each client address. Throws Expected. */
export function readIpLimits(given: unknown = {}): IpLimitsConfig {
  const limit = integer(1, REQUESTS_MAX)
  const readers = { singlePerMinute: limit, bulkPerHour: limit }
  return Object.freeze(readFields<Required<IpLimitsConfig>>(given, readers))
}
