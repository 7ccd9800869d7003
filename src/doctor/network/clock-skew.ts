import { DAY, MINUTE } from '../../platform/clock.ts'
import { formatDurationInWords } from '../../platform/format.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import type { HandshakeResult } from './smtp-handshake.ts'

/** Checks the system clock against the dates in server greetings. */
export function clockFinding(handshakes: readonly HandshakeResult[], now: number): Finding {
  if (now < NOT_BEFORE) {
    return fail(`the clock shows ${shown(now)}, which is before this version of ev was built`, SYNC)
  }
  const offsets = handshakes
    .map(offsetOf)
    .filter(offset => offset !== null)
    .sort((a, b) => a - b)
  const offset = offsets[Math.floor(offsets.length / 2)]
  if (offset === undefined) return ok(`the clock shows ${shown(now)}; no mail server sent its time`)
  const says = `the clock is ${formatDurationInWords(Math.abs(offset), Math.round)} ${offset > 0 ? 'fast' : 'slow'} compared with mail servers`
  if (Math.abs(offset) > DAY) return fail(says, SYNC)
  if (Math.abs(offset) > OFFSET_MAX_MS) return warn(says, SYNC)
  return ok('the clock agrees with mail servers')
}

/** The month in which this check was written: no correct clock shows an earlier time. */
const NOT_BEFORE = Date.UTC(2026, 10, 1)
/** Schedules and result timestamps tolerate this offset. */
const OFFSET_MAX_MS = 5 * MINUTE
const SYNC = 'Synchronize the clock: run timedatectl set-ntp true, or chrony.'

/**
 * Returns how far the clock is ahead of a date (RFC 5322 §3.3) in the greeting, as Exim, Sendmail
 * and Exchange send it; null if there is none.
 */
function offsetOf({ outcome }: HandshakeResult): number | null {
  if (outcome.kind !== 'greeted') return null
  const [date] =
    /\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} [+-]\d{4}/.exec(
      outcome.greeting.text,
    ) ?? []
  const reported = date === undefined ? Number.NaN : Date.parse(date)
  return Number.isNaN(reported) ? null : outcome.at - reported
}

const shown = (at: number) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`
