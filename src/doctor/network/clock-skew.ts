import { DAY, MINUTE } from '../../platform/clock.ts'
import { formatDurationInWords } from '../../platform/format.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import type { HandshakeResult } from './smtp-handshake.ts'

/** Whether our clock goes right, by the dates in the greetings of servers. */
export function clockFinding(visits: readonly HandshakeResult[], now: number): Finding {
  if (now < NOT_BEFORE) {
    return fail(`it is ${shown(now)} here, which is before this program was made`, SET_IT)
  }
  const offsets = visits
    .map(offsetOf)
    .filter(offset => offset !== null)
    .sort((a, b) => a - b)
  const offset = offsets[Math.floor(offsets.length / 2)]
  if (offset === undefined) return ok(`it is ${shown(now)} here; no mail server told the time`)
  const off = `our clock is ${formatDurationInWords(Math.abs(offset), Math.round)} ${offset > 0 ? 'fast' : 'slow'} by the time of mail servers`
  if (Math.abs(offset) > DAY) return fail(off, SET_IT)
  if (Math.abs(offset) > OFFSET_MAX_MS) return warn(off, SET_IT)
  return ok('our clock agrees with that of mail servers')
}

/** No clock that goes right is before this: the month in which the doctor was written. */
const NOT_BEFORE = Date.UTC(2026, 10, 1)
/** What waits for a time of day or dates a result bears this much. */
const OFFSET_MAX_MS = 5 * MINUTE
const SET_IT = 'Let the system keep the time: timedatectl set-ntp true, or run chrony.'

/** How far our clock was ahead when the server greeted with a date of RFC 5322 §3.3, as Exim, Sendmail and Exchange do. */
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
