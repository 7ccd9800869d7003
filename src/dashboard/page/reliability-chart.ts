import { html } from 'hono/html'
import type { CalibrationBin } from '../../client/types.ts'
import { formatNumber, formatPercent } from '../../platform/format.ts'
import { type Html, NOTHING } from './html.ts'

type Bins = readonly CalibrationBin[]

/** Size of the diagram in SVG units. */
const SIZE = 200
/** The left margin has the labels of the vertical axis. */
const LEFT = 34
const BOTTOM = 32
const TOP = 8
const RIGHT = 12

const TICKS = [0, 0.25, 0.5, 0.75, 1]

const xAt = (share: number) => (LEFT + share * SIZE).toFixed(1)
const yAt = (share: number) => (TOP + (1 - share) * SIZE).toFixed(1)

/**
 * Renders a reliability diagram as SVG: for each range of confidence the share of correct verdicts.
 * The points of a perfect confidence are on the diagonal. Its numbers follow as a table.
 */
export function reliabilityChart(bins: Bins, fixedBins: Bins): Html {
  const largest = Math.max(1, ...bins.map(({ count }) => count))
  const width = LEFT + SIZE + RIGHT
  const height = TOP + SIZE + BOTTOM
  return html`
    <figure class="reliability">
      <svg viewBox="0 0 ${width} ${height}" aria-hidden="true">
        ${TICKS.map(gridLines)}
        <line class="ideal" x1="${xAt(0)}" y1="${yAt(0)}" x2="${xAt(1)}" y2="${yAt(1)}" />
        ${fixedBins.map(
          ({ predicted, observed }) =>
            html`<circle class="fixed" cx="${xAt(predicted)}" cy="${yAt(observed)}" r="4" />`,
        )}
        <polyline class="measured" points="${bins.map(({ predicted, observed }) => `${xAt(predicted)},${yAt(observed)}`).join(' ')}" />
        ${bins.map(
          ({ count, predicted, observed }) =>
            html`<circle class="measured" cx="${xAt(predicted)}" cy="${yAt(observed)}" r="${radiusOf(count / largest)}" />`,
        )}
        <text x="${xAt(0.5)}" y="${height - 4}" text-anchor="middle">Confidence</text>
      </svg>
      <figcaption>
        <ul class="legend is-row">
          <li><span class="point is-measured"></span>Confidence of the verdicts</li>
          <li><span class="point is-fixed"></span>Fixed confidence</li>
        </ul>
        <p><small>Vertical: share of correct verdicts. On the dashed line, confidence is exact; below it, too high.</small></p>
      </figcaption>
    </figure>
    <details><summary>Show as table</summary>${binTable(bins)}</details>`
}

/** The area of a point is in proportion to its verdicts, above a visible minimum. */
const radiusOf = (share: number) => (2.5 + 4.5 * Math.sqrt(Math.max(0, share))).toFixed(1)

const gridLines = (share: number): Html => html`
  <line class="grid" x1="${xAt(0)}" y1="${yAt(share)}" x2="${xAt(1)}" y2="${yAt(share)}" />
  <text x="${LEFT - 5}" y="${yAt(share)}" text-anchor="end" dominant-baseline="middle">${percent(share)}</text>
  ${share === 0.25 || share === 0.75 ? NOTHING : html`<text x="${xAt(share)}" y="${TOP + SIZE + 13}" text-anchor="middle">${percent(share)}</text>`}`

const percent = (share: number) => `${Math.round(100 * share)} %`

const binTable = (bins: Bins): Html => html`
  <div class="scroll"><table>
    <caption class="unseen">Confidence and share of correct verdicts</caption>
    <thead><tr>
      <th scope="col" class="number">Confidence</th><th scope="col" class="number">Correct</th>
      <th scope="col" class="number">Verdicts</th>
    </tr></thead>
    <tbody>${bins.map(
      ({ predicted, observed, count }) => html`
        <tr><td class="number">${formatPercent(predicted, 1)}</td><td class="number">${formatPercent(observed, 1)}</td>
        <td class="number">${formatNumber(count)}</td></tr>`,
    )}</tbody>
  </table></div>`
