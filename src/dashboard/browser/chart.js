// Draws the table of days as a chart: a bar for each day, its classes one upon the other.

/** @typedef {{ colour: string, values: number[], label: HTMLElement | null }} Kind */

const HEIGHT = 260
/** Columns of the table, and entries of the legend, that are drawn; from the ground up. */
const KINDS = ['deliverable', 'risky', 'undeliverable', 'unknown']

for (const chart of document.querySelectorAll('[data-chart]')) {
  begin(/** @type {HTMLElement} */ (chart)).catch(console.error)
}

async function begin(/** @type {HTMLElement} */ chart) {
  const table = document.getElementById(chart.dataset.chart ?? '')
  const details = table?.closest('details')
  // The chart says the same; whoever wants the numbers opens them.
  details?.removeAttribute('open')
  details?.setAttribute('data-awake', '')
  const legend = document.getElementById(`${chart.dataset.chart}-legend`)
  if (table === null || legend === null) return
  await Promise.all([script('./uplot.js'), sheet('./uplot.css')])
  let drawn = draw(chart, table, legend)
  const again = () => {
    drawn.destroy()
    drawn = draw(chart, table, legend)
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again)
  new ResizeObserver(() => drawn.setSize({ width: chart.clientWidth, height: HEIGHT })).observe(
    chart,
  )
}

/** The library is a classic script, which puts itself into the window. */
function script(/** @type {string} */ name) {
  const src = new URL(name, import.meta.url).href
  return loaded(Object.assign(document.createElement('script'), { src }))
}

function sheet(/** @type {string} */ name) {
  const href = new URL(name, import.meta.url).href
  return loaded(Object.assign(document.createElement('link'), { rel: 'stylesheet', href }))
}

function loaded(/** @type {HTMLElement} */ element) {
  return new Promise((resolve, reject) => {
    element.addEventListener('load', resolve)
    element.addEventListener('error', () => reject(new Error('A file of the chart is not there.')))
    document.head.append(element)
  })
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
  const { color: ink, borderTopColor: line } = getComputedStyle(chart)
  const bars = uPlot.paths.bars?.({ size: [0.7, 48] })
  const axis = { stroke: ink, ticks: { show: false }, grid: { stroke: line, width: 1 } }
  return new uPlot(
    {
      ...{ width: chart.clientWidth, height: HEIGHT },
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: () => [-0.6, days.length - 0.4] },
        y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] },
      },
      axes: [
        {
          ...{ ...axis, grid: { show: false }, size: 32, incrs: [1, 2, 5, 7, 10] },
          values: (_, places) => places.map(place => shortDay(days[place])),
        },
        {
          ...axis,
          size: 64,
          incrs: INCRS,
          values: (_, counts) => counts.map(count => count.toLocaleString()),
        },
      ],
      series: [
        {},
        // The tallest first, so that the others stand in front of it.
        ...kinds.toReversed().map(({ colour }) => ({
          ...{ fill: colour, stroke: colour, width: 0, points: { show: false } },
          ...(bars && { paths: bars }),
        })),
      ],
      hooks: { setCursor: [plot => tell(legend, { kinds, days, at: plot.cursor.idx ?? null })] },
    },
    [days.map((_, n) => n), ...stacked(kinds.map(({ values }) => values)).toReversed()],
    chart,
  )
}

/** Whole numbers alone, as there is no half verification. */
const INCRS = Array.from({ length: 12 }, (_, n) => 10 ** n).flatMap(ten => [ten, 2 * ten, 5 * ten])

/** @returns {Kind} */
function kindOf(
  /** @type {string} */ name,
  /** @type {number} */ n,
  /** @type {{ rows: Element[], legend: HTMLElement }} */ { rows, legend },
) {
  const dot = legend.querySelector(`.dot.is-${name}`)
  const values = rows.map(row => numberIn(row.querySelectorAll('td')[n]))
  const label = dot?.parentElement?.querySelector('b') ?? null
  // Variables are colours for two themes; what is computed of them is the one of now.
  const colour = dot === null ? 'gray' : getComputedStyle(dot).backgroundColor
  return { colour, values, label }
}

const numberIn = (/** @type {Element | undefined} */ cell) =>
  Number((cell?.textContent ?? '').replaceAll(',', ''))

/** Each upon those before it. */
function stacked(/** @type {number[][]} */ rows) {
  let below = rows[0]?.map(() => 0) ?? []
  return rows.map(row => {
    below = row.map((value, n) => value + (below[n] ?? 0))
    return below
  })
}

/** Says the numbers of the day that is pointed at, else the sums. */
function tell(
  /** @type {HTMLElement} */ legend,
  /** @type {{ kinds: Kind[], days: string[], at: number | null }} */ { kinds, days, at },
) {
  legend.querySelector('.day')?.replaceChildren(at === null ? 'All days' : (days[at] ?? ''))
  for (const { label, values } of kinds) {
    const value = at === null ? values.reduce((sum, one) => sum + one, 0) : (values[at] ?? 0)
    label?.replaceChildren(value.toLocaleString('en'))
  }
}

/** 2026-03-21 → 21 Mar, in the reader's words. */
const shortDay = (/** @type {string | undefined} */ day) =>
  day === undefined || day === '' ? '' : SHORT.format(new Date(day))

const SHORT = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  timeZone: 'UTC',
})
