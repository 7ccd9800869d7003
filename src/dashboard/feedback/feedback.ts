import { Hono } from 'hono'
import { html } from 'hono/html'
import type { FeedbackReport, FeedbackReportAnswer } from '../../client/types.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import { formatNumber, formatPercent, pluralize } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { reliabilityChart } from '../page/chart.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { empty, notice, reasonWord } from '../page/notice.ts'
import { card, tiles } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { codeBlock } from '../page/text.ts'
import { newSourceRoutes } from './new-source.ts'
import { receivedCard } from './received.ts'
import { sourceRoutes } from './sources.ts'

/** Routes of feedback: the report, and the sources from which email providers send events. */
export function feedbackRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', reportRoutes(deps))
  // Before the routes of a source, as `/feedback/sources/:id` would match its path, too.
  router.route('/', newSourceRoutes(deps))
  router.route('/', sourceRoutes(deps))
  return router
}

/** The Feedback page: how well confidence matches the outcomes that were reported. */
const reportRoutes = ({ settings }: DashboardDeps): Hono<Env> =>
  new Hono<Env>().get('/feedback', async c => {
    const { data } = await c.get('api').ask<FeedbackReportAnswer>('/v1/feedback/report')
    return page(c, {
      title: 'Feedback',
      intro: 'Compares verdicts with what happened to the messages.',
      actions: html`<a class="button" href="/feedback/sources">Sources</a>`,
      body: html`
        ${data.total.count === 0 ? hint(data, settings.baseUrl) : figures(data)}
        ${receivedCard(data.received)}`,
    })
  })

/** Says how to report feedback, or what is missing for the report. */
function hint({ received }: FeedbackReport, baseUrl: string): Html {
  if (received.length > 0) {
    return notice(
      'info',
      'No outcomes yet. Verdicts are compared with the bounces and deliveries that are reported within 30 days.',
    )
  }
  return html`
    ${empty({
      title: 'No feedback yet',
      icon: 'send',
      text: 'Report bounces, deliveries and complaints. Later verdicts use them, and this page compares the confidence of verdicts with the outcomes.',
    })}
    ${card({
      title: 'Report feedback',
      body: html`
        <p>Let an email provider send its events: <a href="/feedback/sources/new">create a feedback source</a>.</p>
        <p>Import a file of bounces, an mbox file or a Maildir on the machine of the service:</p>
        ${codeBlock('ev feedback import bounces.csv --kind bounced')}
        <p>Or send events with a key that has the scope <code>feedback:write</code>:</p>
        ${codeBlock(`curl ${baseUrl}/v1/feedback -H "Authorization: Bearer $EV_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"items": [{"email": "user@example.com", "kind": "bounced", "code": 550}]}'`)}`,
    })}`
}

const figures = (report: FeedbackReport): Html => html`
  ${mainFigures(report)}
  <div class="grid is-12">
    ${card({ title: 'Reliability', span: 6, body: reliabilityChart(report.bins, report.fixed_bins) })}
    ${outcomesCard(report.outcomes)}
    ${card({ title: 'By reason', span: 12, body: reasonTable(report.reasons) })}
    ${card({ title: 'By provider', span: 12, body: operatorTable(report.operators) })}
  </div>`

const mainFigures = ({ total, fixed_confidence: fixed, outcomes }: FeedbackReport): Html => {
  const { predicted_bounces: predicted, missed_bounces: missed } = outcomes
  const { lost_deliveries: lost, kept_deliveries: kept } = outcomes
  return tiles([
    {
      label: 'Verdicts compared',
      value: formatNumber(total.count),
      note: `${formatPercent(total.observed, 1)} correct`,
    },
    {
      label: 'Calibration error',
      value: formatPercent(total.calibration_error, 1),
      note: html`Fixed confidence: <span class="nowrap">${formatPercent(fixed.calibration_error, 1)}</span>`,
    },
    {
      label: 'Brier score',
      value: total.brier_score.toFixed(3),
      note: `Fixed confidence: ${fixed.brier_score.toFixed(3)}`,
    },
    {
      label: 'Bounces predicted',
      value: formatPercent(predicted, predicted + missed),
      note: `${formatNumber(predicted)} of ${formatNumber(predicted + missed)}`,
    },
    {
      label: 'Deliveries lost',
      value: formatPercent(lost, lost + kept),
      note: `${formatNumber(lost)} of ${formatNumber(lost + kept)}`,
    },
  ])
}

/** Shows the effect of a sender that mails only deliverable addresses. */
const outcomesCard = (outcomes: FeedbackReport['outcomes']): Html =>
  card({
    title: 'If you had sent to deliverable addresses only',
    span: 6,
    body: html`
      ${share({
        title: 'Bounces avoided',
        part: outcomes.predicted_bounces,
        rest: outcomes.missed_bounces,
        kinds: ['deliverable', 'undeliverable'],
        text: ['that bounced', 'had a verdict that was not deliverable'],
      })}
      ${share({
        title: 'Deliveries kept',
        part: outcomes.kept_deliveries,
        rest: outcomes.lost_deliveries,
        kinds: ['deliverable', 'risky'],
        text: ['that arrived', 'had a deliverable verdict'],
      })}
      <p><small>Unknown addresses and most catch-all addresses do not count as deliverable. Messages without a report are not counted.</small></p>`,
  })

type Share = {
  readonly title: string
  readonly part: number
  readonly rest: number
  readonly kinds: readonly [string, string]
  readonly text: readonly [which: string, verdict: string]
}

const share = ({ title, part, rest, kinds, text }: Share): Html => {
  const total = part + rest
  const width = (100 * part) / Math.max(1, total)
  return html`
    <h3>${title}</h3>
    <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="fill-${kinds[0]}" x="0" y="0" width="${width.toFixed(2)}" height="8" />
      <rect class="fill-${kinds[1]}" x="${width.toFixed(2)}" y="0" width="${total === 0 ? 0 : (100 - width).toFixed(2)}" height="8" />
    </svg>
    <p>${total === 0 ? 'None reported.' : html`Of ${pluralize(total, 'message')} ${text[0]}, <b>${formatNumber(part)}</b> (${formatPercent(part, total)}) ${text[1]}.`}</p>`
}

type Row = FeedbackReport['total']

const figure = (label: string, cell: (row: Row) => string) => ({
  label,
  cell,
  kind: 'number' as const,
})

/** Columns of both tables, after the names. */
const FIGURES = [
  figure('Verdicts', ({ count }) => formatNumber(count)),
  figure('Confidence', ({ predicted }) => formatPercent(predicted, 1)),
  figure('Correct', ({ observed }) => formatPercent(observed, 1)),
  figure('Brier score', ({ brier_score: score }) => score.toFixed(3)),
  figure('Calibration error', ({ calibration_error: error }) => formatPercent(error, 1)),
]

const reasonTable = (rows: FeedbackReport['reasons']): Html =>
  table({
    caption: 'Confidence and outcomes by reason',
    rows,
    columns: [{ label: 'Reason', kind: 'name', cell: ({ reason }) => nameOf(reason) }, ...FIGURES],
  })

/** Operators shown, each with a reason. */
const OPERATORS_SHOWN = 10

const operatorTable = (rows: FeedbackReport['operators']): Html => html`
  ${table({
    caption: 'Confidence and outcomes by provider and reason',
    rows: rows.slice(0, OPERATORS_SHOWN),
    columns: [
      { label: 'Provider', kind: 'name', cell: ({ operator }) => operator ?? 'Unknown' },
      { label: 'Reason', cell: ({ reason }) => nameOf(reason) },
      ...FIGURES,
    ],
  })}
  ${
    rows.length <= OPERATORS_SHOWN
      ? NOTHING
      : html`<p><small>The ${OPERATORS_SHOWN} with the most verdicts. <code>ev feedback report --json</code> prints all.</small></p>`
  }`

/** `catch_all/low` → "Catch-all domain, low risk". */
function nameOf(name: string): string {
  const [reason = '', risk] = name.split('/')
  return `${reasonWord(reason as Reason)}${risk === undefined ? '' : `, ${risk} risk`}`
}
