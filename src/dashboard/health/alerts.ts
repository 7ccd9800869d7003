import { html } from 'hono/html'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Html } from '../page/html.ts'
import { time } from '../page/text.ts'
import { isBlocked } from './operators.ts'
import type { EgressStatus, OperatorStatus, OperatorsStatus } from './source.ts'

/** Every page of the operator asks; a sentence that comes so much late is early enough. */
const REPORT_TTL_MS = 5 * SECOND
/** Fewer addresses turned away are no reason to tell it on every page: it is a connection's worth. */
const TURNED_AWAY_MIN = 20

/** What stands on every page of the operator: that nobody can be reached, or that many addresses are not asked for; null: nothing. */
export function createAlerts(operators: () => OperatorsStatus, clock: Clock): () => Html | null {
  let reported: Html | null = null
  let reportedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (clock.monotonicNow() - reportedAt < REPORT_TTL_MS) return reported
    reportedAt = clock.monotonicNow()
    reported = alertsFrom(operators(), clock.now())
    return reported
  }
}

function alertsFrom({ egresses, shown }: OperatorsStatus, now: number): Html | null {
  const closed = egresses.find(({ closedSince }) => closedSince !== null)
  if (closed !== undefined) return closedSentence(closed, egresses.length > 1)
  const refusing = shown.find(
    one => isBlocked(one, now) && (one.refusal?.skipped ?? 0) >= TURNED_AWAY_MIN,
  )
  return refusing === undefined ? null : refusedSentence(refusing)
}

function closedSentence({ name, closedSince, port }: EgressStatus, isOneOfMany: boolean): Html {
  const whence = isOneOfMany ? `from the egress “${name}”` : 'from here'
  return html`No mail server can be reached on port ${port} ${whence} since ${time(closedSince)}. ${MORE}`
}

const refusedSentence = ({ title, refusal }: OperatorStatus): Html =>
  html`${title} refuses us since ${time(refusal?.since ?? null)}: ${formatNumber(refusal?.skipped ?? 0)} addresses ended as unknown since then. ${MORE}`

const MORE = html`<a href="/doctor">Health</a> says why, and what to do.`
