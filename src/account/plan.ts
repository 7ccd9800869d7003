import { DAY } from '../base/clock.ts'

/** What an account may do: how often it asks, and how much. */
export type Plan = {
  readonly name: string
  /** Requests that a key may make in `perMs`. */
  readonly requests: number
  readonly perMs: number
  /** Verifications a day, counted in credits; null: any number. */
  readonly creditsPerDay: number | null
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000

/** The plans of the service, as it states them; the config file may change them and add others. */
export const PLANS: readonly Plan[] = [
  { name: 'free', requests: 10, perMs: MINUTE_MS, creditsPerDay: 100 },
  { name: 'starter', requests: 10, perMs: SECOND_MS, creditsPerDay: null },
  { name: 'professional', requests: 50, perMs: SECOND_MS, creditsPerDay: null },
  { name: 'enterprise', requests: 500, perMs: SECOND_MS, creditsPerDay: null },
]

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
