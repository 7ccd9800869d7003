import { html } from 'hono/html'
import type { Counts, Stats } from '../../client/types.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { formatNumber, formatPercent } from '../../platform/format.ts'
import { bars } from '../page/chart.ts'
import { type Html, NOTHING } from '../page/html.ts'

/** From the ground up, as the chart stacks them. */
const CLASSES = ['deliverable', 'risky', 'undeliverable', 'unknown'] as const satisfies Class[]

/** The sums of a period. */
export const totals = (total: Counts): Html => html`
  <dl class="figures is-spread">
    <div><dt>Verifications</dt><dd>${formatNumber(total.verifications)}</dd></div>
    ${CLASSES.map(
      kind =>
        html`<div><dt>${kind}</dt><dd>${formatNumber(total[kind])} <small>${formatPercent(total[kind], total.verifications)}</small></dd></div>`,
    )}
    <div><dt>Known from before</dt><dd>${formatNumber(total.cached)}</dd></div>
    <div><dt>Credits used</dt><dd>${formatNumber(total.credits)}</dd></div>
  </dl>`

type Day = Stats['data']['days'][number]

/** Verifications by day: a table, which scripts draw a chart of. */
export const daysCard = (days: readonly Day[], total: Counts): Html => html`
  <section class="card">
    <h2>By day</h2>
    ${days.length > 1 ? chart(total) : NOTHING}
    <details class="numbers" open>
      <summary>The numbers as a table</summary>
      <div class="scroll"><table id="days">
        <caption class="unseen">Verifications by day (UTC) and class</caption>
        <thead><tr>
          <th scope="col">Day (UTC)</th>
          ${CLASSES.map(kind => html`<th scope="col" class="number">${kind}</th>`)}
          <th scope="col" class="number">All</th><th scope="col" class="number">Credits</th>
        </tr></thead>
        <tbody>${days.map(
          day => html`
            <tr>
              <th scope="row">${day.date}</th>
              ${CLASSES.map(kind => html`<td class="number">${formatNumber(day[kind])}</td>`)}
              <td class="number">${formatNumber(day.verifications)}</td><td class="number">${formatNumber(day.credits)}</td>
            </tr>`,
        )}</tbody>
      </table></div>
    </details>
  </section>`

/** Where the chart goes, and what its colours mean; over a day the numbers are those of that day. */
const chart = (total: Counts): Html => html`
  <div class="chart" data-chart="days" aria-hidden="true"></div>
  <ul class="legend is-row" id="days-legend">
    <li class="day">All days</li>
    ${CLASSES.map(
      kind =>
        html`<li><span class="dot is-${kind}"></span>${kind} <b>${formatNumber(total[kind])}</b></li>`,
    )}
  </ul>`

/** Verifications by key, the busiest first. */
export const keysCard = (keys: Stats['data']['keys']): Html => html`
  <section class="card">
    <h2>By key</h2>
    ${bars(
      'Verifications of each key, by class',
      keys
        .toSorted((a, b) => b.verifications - a.verifications)
        .map(key => ({
          label: key.key_name ?? `${key.key_id} (revoked)`,
          segments: CLASSES.map(kind => ({ value: key[kind], kind })),
        })),
    )}
  </section>`
