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
import { leaveNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import { isActive } from './charts.ts'

type JobPageDeps = Pick<DashboardDeps, 'clock' | 'random'>

/** Renders the counts of a list that verifies another one again. */
export async function changesOf(c: Context<Env>, job: Job): Promise<Html> {
  if (job.previous_job_id === undefined) return NOTHING
  const path = `/v1/jobs/${encodeURIComponent(job.job_id)}/changes`
  const { data } = await c.get('api').ask<ChangePage>(path, { query: { limit: 1 } })
  const previous = html`<a href="/lists/${job.previous_job_id}">an earlier list</a>`
  return card({
    title: 'Changes',
    body: html`
      <p>This list verifies ${previous} again. ${pluralize(data.verified, 'row')} verified so far,
        ${formatNumber(data.changed)} with another class. The other rows keep their result.</p>
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

/** Renders the schedule of a finished list, or the forms that verify it again. */
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
    title: 'Verify again',
    body: html`
      ${schedule === null ? NOTHING : stateOf(schedule)}
      ${schedule === null || !mayChange ? NOTHING : scheduleActions(c, path, schedule)}
      ${mayChange ? newRun(c, random, path, schedule === null) : NOTHING}`,
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
        : html`This list is verified again ${every} (${rowsOf(schedule)}), next ${time(next_run_at)}.`
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
      ...{ action: `${path}/schedule/delete`, label: 'Delete schedule', yes: 'Delete schedule' },
      question: 'This list is not verified again. The lists of earlier runs stay.',
    })}
  </div>`

/** Both forms create a list with all rows; the rows that are not selected keep their result. */
function newRun(
  c: Context<Env>,
  random: JobPageDeps['random'],
  path: string,
  canSchedule: boolean,
): Html {
  const rows = select({
    ...{ label: 'Rows', name: 'selected' },
    choices: ROW_CHOICES.map(({ value, label }) => ({ value, label })),
  })
  const days = field({
    ...{ label: 'Interval in days (1 to 365)', name: 'every_days', type: 'number', value: '30' },
  })
  return form(
    c,
    `${path}/reverify`,
    html`${nonceField(random)}<div class="row">${rows}
      <button name="when" value="now">Verify again now</button>
      ${canSchedule ? html`${days}<button name="when" value="schedule">Create schedule</button>` : NOTHING}</div>`,
  )
}

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

/** Routes that verify a list again, now or at intervals. */
export function reverifyRoutes(fail: Fail): Hono<Env> {
  const changeSchedule =
    (options: { readonly method: 'PATCH' | 'DELETE'; readonly body?: object }, note: string) =>
    async (c: Context<Env>): Promise<Response> => {
      const job = await c.get('api').ask<Job>(`/v1/jobs/${idOf(c)}`)
      const schedule = await findSchedule(c, job)
      if (schedule === null) throw new Refusal(404, 'The list has no schedule.')
      try {
        await c.get('api').ask(`/v1/schedules/${schedule.id}`, options)
      } catch (error) {
        return fail(c, problemWith(error))
      }
      leaveNote(c, note)
      return c.redirect(`/lists/${idOf(c)}`, 303)
    }

  return new Hono<Env>()
    .post('/lists/:id/reverify', async c => {
      const sent = await sentForm(c)
      try {
        return c.redirect(await create(c, sent), 303)
      } catch (error) {
        return fail(c, problemWith(error))
      }
    })
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

/** Creates a list or a schedule; returns the page to show. */
async function create(c: Context<Env>, sent: SubmittedForm): Promise<string> {
  const api = c.get('api')
  const job = await api.ask<Job>(`/v1/jobs/${idOf(c)}`)
  const chosen = ROW_CHOICES.find(({ value }) => value === sent.text('selected')) ?? ROW_CHOICES[0]
  const once = readNonce(sent)
  if (sent.text('when') !== 'schedule') {
    const path = `/v1/jobs/${idOf(c)}/reverify`
    const created = await api.ask<ReverifyJob>(path, { body: chosen.selection, once })
    leaveNote(c, 'The list is verified again.')
    return `/lists/${created.job_id}`
  }
  const every_days = Number(sent.text('every_days'))
  const body = { job_id: job.job_id, every_days, ...chosen.selection }
  await api.ask('/v1/schedules', { body, once })
  leaveNote(c, 'Schedule created.')
  return `/lists/${idOf(c)}`
}

const idOf = (c: Context<Env>) => encodeURIComponent(c.req.param('id') ?? '')
