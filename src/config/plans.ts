import { MINUTE, SECOND } from '../platform/clock.ts'
import { orNull, readByName, readFields } from './fields.ts'
import { integer, oneOf } from './values.ts'

/** More than any machine answers. */
const REQUESTS_MAX = 1_000_000
const CREDITS_MAX = 1_000_000_000
const JOBS_MAX = 1_000_000
const ROWS_MAX = 1_000_000_000_000

/** The plans of the config file, by name. Throws Expected. */
export const readPlans = (given: unknown): Readonly<Record<string, PlanConfig>> =>
  readByName(given, readPlan)

/** What the config file says of one plan; what it leaves out stays as it is without. Null: any number. */
export type PlanConfig = Readonly<ReturnType<typeof readPlan>>

function readPlan(given: unknown) {
  const { per, ...rest } = readFields(given, {
    requests: integer(1, REQUESTS_MAX),
    per: oneOf('second', 'minute'),
    creditsPerDay: orNull(integer(1, CREDITS_MAX)),
    concurrentJobs: orNull(integer(1, JOBS_MAX)),
    storedRows: orNull(integer(1, ROWS_MAX)),
  })
  return { ...rest, ...(per !== undefined && { perMs: PER_MS[per] }) }
}

const PER_MS = { second: SECOND, minute: MINUTE } as const

/** What the config file says of the limits for each client address. */
export type IpLimitsConfig = ReturnType<typeof readIpLimits>

/** Reads it. Throws Expected. */
export function readIpLimits(given: unknown = {}) {
  const limit = integer(1, REQUESTS_MAX)
  return Object.freeze(readFields(given, { singlePerMinute: limit, bulkPerHour: limit }))
}
