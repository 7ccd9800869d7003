import { html } from 'hono/html'
import type { Webhook } from '../../client/types.ts'
import { formatNumber, formatPercent } from '../../platform/format.ts'
import { bar } from '../page/chart.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { card } from '../page/parts.ts'

type Day = Webhook['daily_attempts'][number]

/** Renders the success rate of an endpoint with a small chart of its days, for a table. */
export function successCell({ daily_attempts: days }: Webhook): Html {
  if (days.length === 0) return html`–`
  const max = Math.max(...days.map(totalOf))
  return html`${rateOf(days)}
    <svg class="spark" viewBox="0 0 ${WIDTH * DAYS_SHOWN} ${HEIGHT}" aria-hidden="true">${days.map(
      (day, n) => column(day, { x: n * WIDTH, max }),
    )}</svg>`
}

/** Days that the API returns at most. */
const DAYS_SHOWN = 7
const WIDTH = 8
const HEIGHT = 18

function column(day: Day, { x, max }: { readonly x: number; readonly max: number }): Html {
  const height = (count: number) => (HEIGHT * count) / max
  const [failed, delivered] = [height(day.failed), height(day.delivered)]
  const rect = (kind: string, y: number, size: number) =>
    html`<rect class="fill-${kind}" x="${x}" width="${WIDTH - 2}" y="${y.toFixed(2)}" height="${size.toFixed(2)}" />`
  return html`${rect('undeliverable', HEIGHT - failed, failed)}${rect('deliverable', HEIGHT - failed - delivered, delivered)}`
}

/** Renders the attempts of the last days as a chart; nothing before the first attempt. */
export const successCard = ({ daily_attempts: days }: Webhook): Html =>
  days.length === 0
    ? NOTHING
    : card({
        title: 'Attempts in the last seven days',
        more: html`<small>${rateOf(days)} successful</small>`,
        body: html`
          <table class="bars">
            <caption class="unseen">Attempts by UTC day</caption>
            ${days.map(day => dayRow(day, Math.max(...days.map(totalOf))))}
          </table>`,
      })

const dayRow = (day: Day, max: number): Html => {
  const segments = [
    { value: day.delivered, kind: 'deliverable' },
    { value: day.failed, kind: 'undeliverable' },
  ] as const
  return html`<tr><th scope="row">${day.date}</th><td class="bar">${bar(segments, max)}</td>
    <td class="number">${formatNumber(totalOf(day))} <small>${rateOf([day])} successful</small></td></tr>`
}

const totalOf = ({ delivered, failed }: Day) => delivered + failed

const rateOf = (days: readonly Day[]) =>
  formatPercent(
    days.reduce((sum, { delivered }) => sum + delivered, 0),
    days.reduce((sum, day) => sum + totalOf(day), 0),
  )
