import { html } from 'hono/html'
import type { Class } from '../../engine/verdict/verdict.ts'
import { formatNumber, formatPercent } from '../../platform/format.ts'
import type { Html } from './html.ts'

type Slice = {
  readonly label: string
  /** The label as a link, which a click on the slice follows too. */
  readonly link?: Html
  readonly value: number
  readonly kind: Class
}

/**
 * Renders a donut chart with a legend as SVG, so it works without JavaScript. `live.js` updates it
 * while a list runs.
 */
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
        <text x="21" y="21.5" text-anchor="middle" dominant-baseline="middle" data-live="done">${formatNumber(total)}</text>
      </svg>
      <figcaption><ul class="legend">${slices.map(
        ({ label, link, value, kind }) =>
          html`<li><span><span class="dot is-${kind}"></span>${link ?? label}</span> <b data-live="${kind}">${formatNumber(value)}</b> <small data-live="${kind}-share">${formatPercent(value, total)}</small></li>`,
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
