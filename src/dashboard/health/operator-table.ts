import { html } from 'hono/html'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { said, stateOf } from './operator-text.ts'
import type { EgressStatus, OperatorStatus, OperatorsStatus } from './source.ts'
import { statusIcon } from './status-icon.ts'

/** Whether mail servers can be reached, and how each operator takes us. */
export function operatorsTable({ egresses, shown, left }: OperatorsStatus, now: number): Html {
  const isMany = egresses.length > 1
  return html`
    <section>
      <h2>Mail servers</h2>
      ${egresses.filter(({ closedSince }) => closedSince !== null).map(one => closed(one, isMany))}
      ${shown.length === 0 ? html`<p>${NONE_PROBED}</p>` : table(shown, isMany, now)}
      ${left === 0 ? NOTHING : html`<p><small>${pluralize(left, 'more operator')} asked lately, with no trouble worse than these.</small></p>`}
    </section>`
}

const NONE_PROBED =
  'No mail server was asked in the last two hours. Each operator that is asked stands here, with its pace, pauses and refusals: those in trouble first.'

const closed = ({ name, closedSince, port }: EgressStatus, isMany: boolean) =>
  notice(
    'bad',
    html`No mail server can be reached on port ${port} ${isMany ? `from the egress “${name}”` : 'from here'} since
      ${time(closedSince)}: most likely outbound port ${port} is blocked. <a href="#check-port-25">Port 25</a> below
      says more. It is tried again with each address, every half a minute at most; addresses end as unknown
      (no_connect) until it opens.`,
  )

const table = (shown: readonly OperatorStatus[], isMany: boolean, now: number) => html`
  <div class="scroll"><table class="operators">
    <thead><tr>
      <th scope="col">Operator</th>${isMany ? html`<th scope="col">Egress</th>` : NOTHING}<th scope="col">State</th>
      <th scope="col" class="number">Connections</th><th scope="col" class="number">New a second</th>
      <th scope="col" class="number">Asked lately</th>
    </tr></thead>
    <tbody>${shown.map(
      one => html`
        <tr>
          <th scope="row">${one.title}</th>${isMany ? html`<td>${one.egress}</td>` : NOTHING}
          <td>${state(one, now)}</td>
          <td class="number">${formatNumber(one.sessions)} of ${ofMost(one.sessionsAllowed, one.sessionsMax)}</td>
          <td class="number">${ofMost(rate(one.sessionsPerSecond), rate(one.sessionsPerSecondMax))}</td>
          <td class="number">${formatNumber(Math.round(one.recent))}</td>
        </tr>`,
    )}</tbody>
  </table></div>`

function state(one: OperatorStatus, now: number): Html {
  const { state, word } = stateOf(one, now)
  return html`${statusIcon(state, word)} ${said(one, now)}`
}

/** “1 (usually 5)”. */
const ofMost = (value: number | string, most: number | string) =>
  value === most ? html`${value}` : html`${value} <small>(usually ${most})</small>`

/** One in five minutes is 0.003 a second. */
const rate = (perSecond: number) => perSecond.toLocaleString('en', { maximumSignificantDigits: 2 })
