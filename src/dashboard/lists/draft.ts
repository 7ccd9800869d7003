import type { Context } from 'hono'
import { Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { FileDryRun } from '../../client/types.ts'
import type { Draft, Drafts } from '../../work/upload/drafts.ts'
import { ApiProblem } from '../api.ts'
import { page } from '../page/layout.ts'
import { Refusal } from '../page/refusal.ts'
import { problemWith, type Sent, sentForm } from '../page/sent.ts'
import type { DashboardParts, Env } from '../parts.ts'
import { leaveNote } from '../session/cookie.ts'
import { draftView } from './draft-view.ts'
import { INTAKE } from './intake.ts'
import { lookAt, type Reading, submit } from './submission.ts'

/** Looking at a list before it starts: its columns, its first rows, and what it will cost. */
export function draftRoutes(drafts: Drafts, { database }: DashboardParts): Hono<Env> {
  const found = (c: Context<Env>) => findDraft(c, drafts, database)
  /** By the draft: those that are becoming jobs at this moment, and the ids that these will have. */
  const starting = new Map<string, Promise<string>>()

  async function jobOf(c: Context<Env>, draft: Draft, reading: Reading): Promise<string> {
    const sent = { draft, path: drafts.pathOf(draft), reading }
    const { job_id } = await submit(c.get('api'), sent)
    await drafts.becameJob(draft, job_id)
    return job_id
  }

  /** A double click waits for what the first click began. */
  function start(c: Context<Env>, draft: Draft, reading: Reading): Promise<string> {
    const job = starting.get(draft.id) ?? jobOf(c, draft, reading)
    starting.set(draft.id, job)
    return job.finally(() => starting.delete(draft.id))
  }

  return new Hono<Env>()
    .get(`${INTAKE}/:id`, async c => {
      const draft = await found(c)
      if (draft.jobId !== null) return c.redirect(`/lists/${draft.jobId}`, 303)
      return draftPage(
        c,
        drafts,
        draft,
        readingOf(name => c.req.query(name)),
      )
    })
    .post(`${INTAKE}/:id/start`, async c => {
      const draft = await found(c)
      if (draft.jobId !== null) return c.redirect(`/lists/${draft.jobId}`, 303)
      const reading = readingOf((await sentForm(c)).text)
      try {
        return c.redirect(`/lists/${await start(c, draft, reading)}`, 303)
      } catch (error) {
        return draftPage(c, drafts, draft, reading, problemWith(error))
      }
    })
    .post(`${INTAKE}/:id/discard`, async c => {
      await drafts.remove(await found(c))
      leaveNote(c, 'The list is discarded: nothing of it is kept.')
      return c.redirect('/lists', 303)
    })
}

async function findDraft(
  c: Context<Env>,
  drafts: Drafts,
  { dialect }: DashboardParts['database'],
): Promise<Draft> {
  const draft = await drafts.find(c.get('user').accountId, c.req.param('id') ?? '')
  if (draft !== null) return draft
  throw new Refusal(404, dialect === 'postgres' ? GONE_OR_ELSEWHERE : GONE)
}

const GONE =
  'This list is not here any more: one that is not started is kept for an hour, until the service starts anew, and while it is among the last five. Send it again under New list.'

const GONE_OR_ELSEWHERE = `${GONE} Should that not help: the service runs on several machines, a list lies on the one that took it until it is started, and another one was asked now. Whoever runs the service can have the load balancer send each visitor to the same one.`

function readingOf(text: (name: string) => ReturnType<Sent['text']> | undefined): Reading {
  const [column, header] = [text('column'), text('header')]
  return {
    column: column && /^\d{1,6}$/.test(column) ? column : undefined,
    header: header === 'true' || header === 'false' ? header : undefined,
  }
}

async function draftPage(
  c: Context<Env>,
  drafts: Drafts,
  draft: Draft,
  reading: Reading,
  refused?: ApiProblem,
): Promise<Response> {
  const seen = await look(c, drafts, draft, reading)
  const problem = seen instanceof ApiProblem ? seen : refused
  const view = { draft, seen: seen instanceof ApiProblem ? null : seen, problem }
  return page(c, {
    ...{ title: draft.name, body: draftView(c, view), scripts: ['draft.js'] },
    status: (problem?.status ?? 200) as ContentfulStatusCode,
  })
}

/** A file that cannot be read as a list is told as that on its page. */
async function look(
  c: Context<Env>,
  drafts: Drafts,
  draft: Draft,
  reading: Reading,
): Promise<FileDryRun | ApiProblem> {
  try {
    return await lookAt(c.get('api'), { draft, path: drafts.pathOf(draft), reading })
  } catch (error) {
    return problemWith(error)
  }
}
