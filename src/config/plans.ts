import { MINUTE, SECOND } from '../platform/clock.ts'
import { orNull, readByName, readFields } from './fields.ts'
import { integer, oneOf } from './values.ts'

/** More than any machine serves. */
const REQUESTS_MAX = 1_000_000
const CREDITS_MAX = 1_000_000_000
const JOBS_MAX = 1_000_000
const ROWS_MAX = 1_000_000_000_000

/** Reads the plans of the config file, by name. Throws Expected. */
export const readPlans = (value: unknown): Readonly<Record<string, PlanConfig>> =>
  readByName(value, readPlan)

/** Settings of the config file for one plan. Omitted fields keep their value; null is unlimited. */
export type PlanConfig = Readonly<ReturnType<typeof readPlan>>

function readPlan(value: unknown) {
  const { per, ...rest } = readFields(value, {
    requests: integer(1, REQUESTS_MAX),
    per: oneOf('second', 'minute'),
    creditsPerDay: orNull(integer(1, CREDITS_MAX)),
    concurrentJobs: orNull(integer(1, JOBS_MAX)),
    storedRows: orNull(integer(1, ROWS_MAX)),
  })
  return { ...rest, ...(per !== undefined && { perMs: PER_MS[per] }) }
}

const PER_MS = { second: SECOND, minute: MINUTE } as const

/** Rate limits of the config file per client address. */
export type IpLimitsConfig = ReturnType<typeof readIpLimits>

/** Reads the rate limits per client address. Throws Expected. */
export function readIpLimits(value: unknown = {}) {
  const limit = integer(1, REQUESTS_MAX)
  const fields = { singlePerMinute: limit, bulkPerHour: limit, formPerMinute: limit }
  return Object.freeze(readFields(value, fields))
}
