import { html } from 'hono/html'
import type { CalibrationBin, Counts, Stats } from '../../client/types.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { formatNumber, formatPercent } from '../../platform/format.ts'
import { type Html, NOTHING } from './html.ts'
import { CLASS_NAMES, CLASSES } from './text.ts'

type Slice = {
  readonly label: string
  /** The label as a link, which a click on the slice follows too. */
  readonly link?: Html
  readonly value: number
  readonly kind: Class
}

/** Renders a donut chart with a legend as SVG, so it works without JavaScript. */
export function donut(slices: readonly Slice[]): Html {
  const total = sumOf(slices)
  let offset = 0
  const arcs = slices.map(({ value, kind }) => {
    const share = (100 * value) / Math.max(1, total)
    const arc = html`<circle class="fill-${kind}" cx="21" cy="21" r="15.9155" pathLength="100"
        stroke-dasharray="${share.toFixed(3)} ${(100 - share).toFixed(3)}" stroke-dashoffset="${(25 - offset).toFixed(3)}" />`
    offset += share
    return arc
  })
  return html`
    <figure class="donut">
      <svg viewBox="0 0 42 42" aria-hidden="true">
        <circle class="track" cx="21" cy="21" r="15.9155" />${arcs}
        <text x="21" y="21.5" text-anchor="middle" dominant-baseline="middle">${formatNumber(total)}</text>
      </svg>
      <figcaption><ul class="legend">${slices.map(
        ({ label, link, value, kind }) =>
          html`<li><span><span class="dot is-${kind}"></span>${link ?? label}</span> <b>${formatNumber(value)}</b> <small>${formatPercent(value, total)}</small></li>`,
      )}</ul></figcaption>
    </figure>`
}

type Bar = {
  readonly label: Html | string
  /** Stacked parts, from left to right. */
  readonly segments: readonly { readonly value: number; readonly kind: Class }[]
}

/** Scale of a bar chart; passed in where only some of its bars are shown. */
type Measure = { readonly total: number; readonly max: number }

export const measureOf = (rows: readonly Bar[]): Measure => {
  const sums = rows.map(({ segments }) => sumOf(segments))
  return { total: sums.reduce((sum, one) => sum + one, 0), max: Math.max(1, ...sums) }
}

/**
 * Renders a bar chart as a table: label, bar, count and share. The caption is for screen readers.
 */
export function bars(
  caption: string,
  rows: readonly Bar[],
  { total, max }: Measure = measureOf(rows),
): Html {
  return html`
    <table class="bars">
      <caption class="unseen">${caption}</caption>
      ${rows.map(
        ({ label, segments }) => html`
          <tr><th scope="row">${label}</th><td class="bar">${bar(segments, max)}</td>
          <td class="number">${formatNumber(sumOf(segments))} <small>${formatPercent(sumOf(segments), total)}</small></td></tr>`,
      )}
    </table>`
}

/** Renders one bar scaled to `max`, for a parent with the CSS class `bars`. */
export function bar(segments: Bar['segments'], max: number): Html {
  let x = 0
  const pieces = segments.map(({ value, kind }) => {
    const width = (100 * value) / max
    const piece = html`<rect class="fill-${kind}" x="${x.toFixed(2)}" y="0" width="${width.toFixed(2)}" height="8" />`
    x += width
    return piece
  })
  return html`<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">${pieces}</svg>`
}

const sumOf = (segments: readonly { readonly value: number }[]) =>
  segments.reduce((sum, { value }) => sum + value, 0)

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
        html`<li><span class="dot is-${kind}"></span>${CLASS_NAMES[kind]} <b data-total="${formatNumber(total[kind])}">${formatNumber(total[kind])}</b></li>`,
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

const percent = (share: number) => `${Math.round(100 * share)}%`

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
