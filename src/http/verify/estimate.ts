import { HOUR, MINUTE, SECOND } from '../../base/clock.ts'
import type { Engine } from '../../engine/engine.ts'

/**
 * How long the verification of so many addresses will take, in words. Half of a list is commonly at one operator, and
 * the others are asked at the same time: so it is the time for half of them, at the pace that an operator is given.
 */
export function estimatedTime(
  engine: Engine,
  o: { readonly addresses: number; readonly sandbox: boolean; readonly checkSmtp: boolean },
): string {
  if (o.sandbox) return inWords((o.addresses / SIMULATED_PER_SECOND) * SECOND)
  if (!o.checkSmtp) return inWords(BEGINNING_MS + (o.addresses / LOOKED_UP_PER_SECOND) * SECOND)
  const { sessionsPerSecond, recipientsPerSession } = engine.pace(USUAL_OPERATOR).row
  const perSecond = sessionsPerSecond * recipientsPerSession
  const askingMs = ((o.addresses * SHARE_OF_LARGEST) / perSecond) * SECOND
  return inWords(BEGINNING_MS + askingMs)
}

/** Nobody is asked, but each result is written down. */
const SIMULATED_PER_SECOND = 5_000
/** A list has up to 1,000 DNS lookups in flight (`work/route/route-items.ts`), and a slow one takes a second. */
const LOOKED_UP_PER_SECOND = 1_000
const SHARE_OF_LARGEST = 0.5
/** An operator without a row of its own in the table of paces. */
const USUAL_OPERATOR = 'example.com'
/** Looking up where mail goes, and the first conversation. */
const BEGINNING_MS = 5 * SECOND

/** A duration in words. Rounded up, as a guess is not to be more exact than it is: to 10 seconds, then to minutes, then to half hours. */
export function inWords(ms: number): string {
  if (ms <= SECOND) return '1 second'
  if (ms < MINUTE)
    return `${Math.ceil(ms / (10 * SECOND)) * 10} seconds`.replace(/^60 seconds$/, '1 minute')
  const minutes = Math.ceil(ms / MINUTE)
  if (ms < 2 * HOUR) return minutes === 1 ? '1 minute' : `${minutes} minutes`
  return `${Math.ceil(ms / (HOUR / 2)) / 2} hours`
}
