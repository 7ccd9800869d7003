import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ChangePage, Job, ReverifyJob, Schedule, SchedulePage } from '../../client/types.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import {
  confirmed,
  field,
  form,
  nonceField,
  problemWith,
  readNonce,
  type SubmittedForm,
  select,
  sentForm,
} from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { Refusal } from '../page/notice.ts'
import { card } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { badge, CLASS_NAMES, time } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import { isActive } from './charts.ts'
import { findJob, jobPath, listPath } from './find-job.ts'

type JobPageDeps = Pick<DashboardDeps, 'clock' | 'random'>

/** Renders the counts of a list that re-verifies another one. */
export async function changesOf(c: Context<Env>, job: Job): Promise<Html> {
  if (job.previous_job_id === undefined) return NOTHING
  const path = `${jobPath(job.job_id)}/changes`
  const { data } = await c.get('api').ask<ChangePage>(path, { query: { limit: 1 } })
  const previous = html`<a href="/lists/${job.previous_job_id}">an earlier list</a>`
  return card({
    title: 'Changes',
    body: html`
      <p>This list re-verifies ${previous}. ${pluralize(data.verified, 'row')} re-verified so far,
        ${formatNumber(data.changed)} with a different class. The other rows keep their results.</p>
      ${data.counts.length === 0 ? NOTHING : countTable(data.counts)}`,
  })
}

const countTable = (counts: ChangePage['data']['counts']): Html =>
  table({
    caption: 'Rows by class before and after',
    columns: [
      { label: 'Before', cell: ({ from }) => badge(from) },
      { label: 'After', cell: ({ to }) => badge(to) },
      { label: 'Rows', kind: 'number', cell: ({ count }) => formatNumber(count) },
    ],
    rows: counts,
  })

/** Renders the forms that re-verify a finished list, now or on a schedule, or its schedule. */
export async function reverifyCard(
  c: Context<Env>,
  { random }: JobPageDeps,
  job: Job,
): Promise<Html> {
  if (job.type === 'single' || isActive(job)) return NOTHING
  const schedule = await findSchedule(c, job)
  const mayChange = may(c.get('user'), 'verify:bulk')
  if (schedule === null && !mayChange) return NOTHING
  const path = `/lists/${job.job_id}`
  return card({
    title: 'Re-verify',
    body: html`
      ${mayChange ? newRun(c, random, path) : NOTHING}
      ${schedule === null ? newSchedule(c, random, path) : html`${stateOf(schedule)} ${mayChange ? scheduleActions(c, path, schedule) : NOTHING}`}`,
  })
}

async function findSchedule(c: Context<Env>, job: Job): Promise<Schedule | null> {
  const { data } = await c.get('api').ask<SchedulePage>('/v1/schedules', {
    query: { job_id: job.job_id, limit: 1 },
    sandbox: job.sandbox === true,
  })
  return data.items[0] ?? null
}

function stateOf(schedule: Schedule): Html {
  const { every_days, next_run_at, last_error, last_job_id } = schedule
  const every = every_days === 1 ? 'every day' : `every ${every_days} days`
  return html`
    <p>${
      next_run_at === null
        ? html`The schedule of this list (${every}, ${rowsOf(schedule)}) is paused.`
        : html`This list is re-verified ${every} (${rowsOf(schedule)}), next at ${time(next_run_at)}.`
    }
    ${last_error === null ? NOTHING : last_error.message}
    ${last_job_id === null ? NOTHING : html`<a href="/lists/${last_job_id}">Latest run</a>`}</p>`
}

function rowsOf({ only, older_than_days: days }: Schedule): string {
  const conditions = [
    ...(only === null ? [] : [only.map(one => CLASS_NAMES[one].toLowerCase()).join(', ')]),
    ...(days === null ? [] : [`older than ${pluralize(days, 'day')}`]),
  ]
  return conditions.length === 0 ? 'all rows' : `rows that are ${conditions.join(' or ')}`
}

const scheduleActions = (c: Context<Env>, path: string, { active }: Schedule): Html => html`
  <div class="actions">
    ${form(c, `${path}/schedule/${active ? 'pause' : 'resume'}`, html`<button>${active ? 'Pause' : 'Resume'} schedule</button>`)}
    ${confirmed(c, {
      action: `${path}/schedule/delete`,
      label: 'Delete schedule',
      yes: 'Delete schedule',
      question: 'This list is no longer re-verified. The lists of earlier runs are kept.',
    })}
  </div>`

/** Creates a list with all rows; the rows that are not selected keep their result. */
const newRun = (c: Context<Env>, random: JobPageDeps['random'], path: string): Html =>
  form(
    c,
    `${path}/reverify`,
    html`${nonceField(random)}<div class="row">${rowChoice('Rows', 'selected')}<button>Re-verify now</button></div>`,
  )

/** The limits of `every_days` in the API. */
const INTERVAL_DAYS = [1, 365] as const

/** Form labels by API field. */
export const LABELS = { every_days: 'Interval in days' }

const newSchedule = (c: Context<Env>, random: JobPageDeps['random'], path: string): Html => {
  const days = field({
    label: LABELS.every_days,
    name: 'every_days',
    type: 'number',
    range: INTERVAL_DAYS,
    required: true,
    value: '30',
  })
  return form(
    c,
    `${path}/schedule`,
    html`${nonceField(random)}<div class="row">${rowChoice('Rows of each run', 'scheduled')}${days}
      <button>Re-verify on a schedule</button></div>`,
  )
}

const rowChoice = (label: string, name: string): Html =>
  select({ label, name, choices: ROW_CHOICES.map(({ value, label }) => ({ value, label })) })

const ROW_CHOICES = [
  { value: 'all', label: 'All rows', selection: {} },
  { value: 'unknown', label: 'Unknown', selection: { only: ['unknown'] } },
  {
    value: 'unknown-90',
    label: 'Unknown, or older than 90 days',
    selection: { only: ['unknown'], older_than_days: 90 },
  },
] as const

/** Renders the page of a list with a problem. */
type Fail = (c: Context<Env>, problem: ApiProblem) => Promise<Response>

/** Routes that re-verify a list, now or at intervals. */
export function reverifyRoutes(fail: Fail): Hono<Env> {
  const changeSchedule =
    (options: { readonly method: 'PATCH' | 'DELETE'; readonly body?: object }, note: string) =>
    async (c: Context<Env>): Promise<Response> => {
      const schedule = await findSchedule(c, await findJob(c))
      if (schedule === null) throw new Refusal(404, 'The list has no schedule.')
      try {
        await c.get('api').ask(`/v1/schedules/${schedule.id}`, options)
      } catch (error) {
        return fail(c, problemWith(error))
      }
      return redirectWithNote(c, listPath(c), note)
    }

  const create = async (c: Context<Env>, how: typeof createRun): Promise<Response> => {
    const sent = await sentForm(c)
    try {
      return await how(c, sent)
    } catch (error) {
      return fail(c, problemWith(error))
    }
  }

  return new Hono<Env>()
    .post('/lists/:id/reverify', c => create(c, createRun))
    .post('/lists/:id/schedule', c => create(c, createSchedule))
    .post(
      '/lists/:id/schedule/pause',
      changeSchedule({ method: 'PATCH', body: { active: false } }, 'Schedule paused.'),
    )
    .post(
      '/lists/:id/schedule/resume',
      changeSchedule({ method: 'PATCH', body: { active: true } }, 'Schedule resumed.'),
    )
    .post('/lists/:id/schedule/delete', changeSchedule({ method: 'DELETE' }, 'Schedule deleted.'))
}

/** Creates a list and opens its page. */
async function createRun(c: Context<Env>, sent: SubmittedForm): Promise<Response> {
  const created = await c.get('api').ask<ReverifyJob>(`${jobPath(c.req.param('id'))}/reverify`, {
    body: selectionIn(sent, 'selected'),
    once: readNonce(sent),
  })
  return redirectWithNote(c, `/lists/${created.job_id}`, 'Re-verification started.')
}

/** Creates a schedule and opens the page of its list. */
async function createSchedule(c: Context<Env>, sent: SubmittedForm): Promise<Response> {
  const every_days = Number(sent.text('every_days'))
  const body = { job_id: c.req.param('id'), every_days, ...selectionIn(sent, 'scheduled') }
  await c.get('api').ask('/v1/schedules', { body, once: readNonce(sent) })
  return redirectWithNote(c, listPath(c), 'Schedule created.')
}

const selectionIn = ({ text }: SubmittedForm, name: string) =>
  (ROW_CHOICES.find(({ value }) => value === text(name)) ?? ROW_CHOICES[0]).selection
