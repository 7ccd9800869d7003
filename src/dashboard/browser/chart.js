// Draws the table of days as a stacked bar chart.

import { LOCALE, loaded, loadScript } from './app.js'

/**
 * The texts are those of the server: of each day from the table, and of all days from the legend.
 * @typedef {{ color: string, values: number[], texts: string[], total: string, label: HTMLElement | null }} Kind
 */

const HEIGHT = 260
/** Columns of the table and entries of the legend, in stacking order from the bottom. */
const KINDS = ['deliverable', 'risky', 'undeliverable', 'unknown']

for (const chart of document.querySelectorAll('[data-chart]')) {
  start(/** @type {HTMLElement} */ (chart)).catch(console.error)
}

async function start(/** @type {HTMLElement} */ chart) {
  const table = document.getElementById(chart.dataset.chart ?? '')
  const details = table?.closest('details')
  // Collapse the table, which shows the same numbers as the chart.
  details?.removeAttribute('open')
  details?.setAttribute('data-awake', '')
  const legend = document.getElementById(`${chart.dataset.chart}-legend`)
  if (table === null || legend === null) return
  // uPlot fails on a locale that `Intl` rejects.
  if (LOCALE !== undefined) Object.defineProperty(navigator, 'language', { value: LOCALE })
  await Promise.all([loadScript('./uplot.js'), loadStylesheet('./uplot.css')])
  let plot = draw(chart, table, legend)
  const redraw = () => {
    plot.destroy()
    plot = draw(chart, table, legend)
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw)
  new ResizeObserver(() => plot.setSize({ width: chart.clientWidth, height: HEIGHT })).observe(
    chart,
  )
}

function loadStylesheet(/** @type {string} */ name) {
  const href = new URL(name, import.meta.url).href
  return loaded(Object.assign(document.createElement('link'), { rel: 'stylesheet', href }))
}

function draw(
  /** @type {HTMLElement} */ chart,
  /** @type {HTMLElement} */ table,
  /** @type {HTMLElement} */ legend,
) {
  const { uPlot } = /** @type {{ uPlot: typeof import('uplot') }} */ (
    /** @type {unknown} */ (window)
  )
  const rows = [...table.querySelectorAll('tbody tr')]
  const days = rows.map(row => row.querySelector('th')?.textContent ?? '')
  const kinds = KINDS.map((name, n) => kindOf(name, n, { rows, legend }))
  const { color: textColor, borderTopColor: gridColor } = getComputedStyle(chart)
  const bars = uPlot.paths.bars?.({ size: [0.7, 48] })
  const font = `12px ${getComputedStyle(document.documentElement).fontFamily}`
  const axis = {
    font,
    stroke: textColor,
    ticks: { show: false },
    grid: { stroke: gridColor, width: 1 },
  }
  return new uPlot(
    {
      width: chart.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: () => [-0.6, days.length - 0.4] },
        y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 32,
          incrs: [1, 2, 5, 7, 10],
          values: (_, indexes) => indexes.map(index => shortDay(days[index])),
        },
        {
          ...axis,
          size: 52,
          incrs: INCRS,
          values: (_, counts) => counts.map(count => count.toLocaleString(LOCALE)),
        },
      ],
      series: [
        {},
        // Tallest first: later series are drawn in front.
        ...kinds.toReversed().map(({ color }) => ({
          fill: color,
          stroke: color,
          width: 0,
          points: { show: false },
          ...(bars && { paths: bars }),
        })),
      ],
      hooks: {
        setCursor: [plot => updateLegend(legend, { kinds, days, at: plot.cursor.idx ?? null })],
      },
    },
    [days.map((_, n) => n), ...stacked(kinds.map(({ values }) => values)).toReversed()],
    chart,
  )
}

/** Axis increments: whole numbers only. */
const INCRS = Array.from({ length: 12 }, (_, n) => 10 ** n).flatMap(ten => [ten, 2 * ten, 5 * ten])

/** @returns {Kind} */
function kindOf(
  /** @type {string} */ name,
  /** @type {number} */ n,
  /** @type {{ rows: Element[], legend: HTMLElement }} */ { rows, legend },
) {
  const dot = legend.querySelector(`.dot.is-${name}`)
  const texts = rows.map(row => row.querySelectorAll('td')[n]?.textContent ?? '')
  const values = texts.map(text => Number(text.replaceAll(',', '')))
  const label = dot?.parentElement?.querySelector('b') ?? null
  const total = label?.dataset.total ?? ''
  // The computed style resolves the CSS variables for the current theme.
  const color = dot === null ? 'gray' : getComputedStyle(dot).backgroundColor
  return { color, values, texts, total, label }
}

/** Returns cumulative sums, so that each series is drawn on top of the previous ones. */
function stacked(/** @type {number[][]} */ rows) {
  let below = rows[0]?.map(() => 0) ?? []
  return rows.map(row => {
    below = row.map((value, n) => value + (below[n] ?? 0))
    return below
  })
}

/** Shows the numbers of the hovered day in the legend, or the totals. */
function updateLegend(
  /** @type {HTMLElement} */ legend,
  /** @type {{ kinds: Kind[], days: string[], at: number | null }} */ { kinds, days, at },
) {
  legend.querySelector('.day')?.replaceChildren(at === null ? 'All days' : (days[at] ?? ''))
  for (const { label, texts, total } of kinds) {
    label?.replaceChildren(at === null ? total : (texts[at] ?? ''))
  }
}

/** Formats a date in the local language: 2026-03-21 → 21 Mar. */
const shortDay = (/** @type {string | undefined} */ day) =>
  day === undefined || day === '' ? '' : SHORT.format(new Date(day))

const SHORT = new Intl.DateTimeFormat(LOCALE, {
  day: 'numeric',
  month: 'short',
  timeZone: 'UTC',
})
