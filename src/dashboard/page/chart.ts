import { html } from 'hono/html'
import type { Class } from '../../engine/verdict/verdict.ts'
import { formatNumber, formatPercent } from '../../platform/format.ts'
import type { Html } from './html.ts'

export type Slice = { readonly label: string; readonly value: number; readonly kind: Class }

/** A ring of shares, with its numbers beside it. Drawn here, so that it is there without scripts. */
export function donut(title: string, slices: readonly Slice[]): Html {
  const whole = sumOf(slices)
  let before = 0
  const arcs = slices
    .filter(({ value }) => value > 0)
    .map(({ value, kind }) => {
      const share = (100 * value) / whole
      const arc = html`<circle class="fill-${kind}" cx="21" cy="21" r="15.9155" pathLength="100"
        stroke-dasharray="${share.toFixed(3)} ${(100 - share).toFixed(3)}" stroke-dashoffset="${(25 - before).toFixed(3)}" />`
      before += share
      return arc
    })
  return html`
    <figure class="donut">
      <svg viewBox="0 0 42 42" role="img" aria-label="${title}: ${slices.map(({ label, value }) => `${label} ${formatPercent(value, whole)}`).join(', ')}">
        <circle class="track" cx="21" cy="21" r="15.9155" />${arcs}
        <text x="21" y="21.5" text-anchor="middle" dominant-baseline="middle">${formatNumber(whole)}</text>
      </svg>
      <figcaption><ul class="legend">${slices.map(
        ({ label, value, kind }) =>
          html`<li><span class="dot is-${kind}"></span>${label} <b>${formatNumber(value)}</b> <small>${formatPercent(value, whole)}</small></li>`,
      )}</ul></figcaption>
    </figure>`
}

export type Bar = {
  readonly label: Html | string
  /** Its parts, one after the other. */
  readonly segments: readonly { readonly value: number; readonly kind: Class }[]
}

/** What bars are measured by, where there are more of them than are shown. */
export type Measure = { readonly whole: number; readonly most: number }

export const measureOf = (rows: readonly Bar[]): Measure => {
  const sums = rows.map(({ segments }) => sumOf(segments))
  return { whole: sums.reduce((sum, one) => sum + one, 0), most: Math.max(1, ...sums) }
}

/**
 * Bars below one another, as a table: a name, a bar, a number with its share of the whole. The caption is for who does
 * not see the heading above it.
 */
export function bars(
  caption: string,
  rows: readonly Bar[],
  { whole, most }: Measure = measureOf(rows),
): Html {
  return html`
    <table class="bars">
      <caption class="unseen">${caption}</caption>
      ${rows.map(
        ({ label, segments }) => html`
          <tr><th scope="row">${label}</th><td class="bar">${bar(segments, most)}</td>
          <td class="number">${formatNumber(sumOf(segments))} <small>${formatPercent(sumOf(segments), whole)}</small></td></tr>`,
      )}
    </table>`
}

/** One bar alone, its whole width being `most`; it stands in something of the class `bars`. */
export function bar(segments: Bar['segments'], most: number): Html {
  let x = 0
  const pieces = segments.map(({ value, kind }) => {
    const width = (100 * value) / most
    const piece = html`<rect class="fill-${kind}" x="${x.toFixed(2)}" y="0" width="${width.toFixed(2)}" height="8" />`
    x += width
    return piece
  })
  return html`<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">${pieces}</svg>`
}

const sumOf = (segments: readonly { readonly value: number }[]) =>
  segments.reduce((sum, { value }) => sum + value, 0)
