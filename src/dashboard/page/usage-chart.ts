import { html } from 'hono/html'
import type { Counts, Stats } from '../../client/types.ts'
import { formatNumber, formatPercent } from '../../platform/format.ts'
import { type Html, NOTHING } from './html.ts'
import { CLASS_NAMES, CLASSES } from './text.ts'

type Day = Stats['data']['days'][number]

/** Renders verifications by day as a table, from which `chart.js` draws the chart. */
export const dayChart = (days: readonly Day[], total: Counts): Html => html`
    ${days.length > 1 ? chart(total) : NOTHING}
    <details class="numbers" open>
      <summary>Show as table</summary>
      <div class="scroll"><table id="days">
        <caption class="unseen">Verifications by day (UTC) and class</caption>
        <thead><tr>
          <th scope="col">Day (UTC)</th>
          ${CLASSES.map(kind => html`<th scope="col" class="number">${CLASS_NAMES[kind]}</th>`)}
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
    </details>`

/** Renders the chart container and its legend, which shows the numbers of the hovered day. */
const chart = (total: Counts): Html => html`
  <div class="chart" data-chart="days" aria-hidden="true"></div>
  <ul class="legend is-row" id="days-legend">
    <li class="day">All days</li>
    ${CLASSES.map(
      kind =>
        html`<li><span class="dot is-${kind}"></span>${CLASS_NAMES[kind]} <b>${formatNumber(total[kind])}</b></li>`,
    )}
  </ul>`

type MeterValue = { readonly used: number; readonly limit: number }

/** Renders usage as a bar with a label. */
export function meter({ used, limit }: MeterValue): Html {
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  const { label, kind } = meterLevel(share)
  return html`
    <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="fill-${kind}" x="0" y="0" width="${(100 * share).toFixed(1)}" height="8" />
    </svg>
    <small>${formatPercent(share, 1)} used${label}</small>`
}

function meterLevel(share: number) {
  if (share >= 1) return { label: ': limit reached', kind: 'undeliverable' }
  if (share >= WARNING_SHARE) return { label: ': limit almost reached', kind: 'risky' }
  return { label: '', kind: 'accent' }
}

/** The threshold of the first quota webhook. */
export const WARNING_SHARE = 0.8
