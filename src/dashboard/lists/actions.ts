import type { Context } from 'hono'
import { Hono } from 'hono'
import type { Job } from '../../client/types.ts'
import type { AskOptions } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { problemWith, sentForm } from '../page/form-data.ts'
import { readNonce } from '../page/form-nonce.ts'
import { leaveNote } from '../session/cookie.ts'
import { jobPage } from './job.ts'

/** What can be done with a list: ending it before its end, going on with it, removing it. */
export function actionRoutes(deps: Pick<DashboardDeps, 'clock' | 'random'>): Hono<Env> {
  /** Asks for a change; where the list has gone on meanwhile its page says so. */
  async function change(
    c: Context<Env>,
    o: {
      readonly path: string
      readonly options: AskOptions
      readonly note: string
      readonly next: string
    },
  ): Promise<Response> {
    try {
      await c.get('api').ask<Job | undefined>(`${apiPathOf(c)}${o.path}`, o.options)
    } catch (error) {
      return jobPage(c, deps, problemWith(error))
    }
    leaveNote(c, o.note)
    return c.redirect(o.next, 303)
  }

  return new Hono<Env>()
    .post('/lists/:id/cancel', c =>
      change(c, {
        ...{ path: '/cancel', options: { method: 'POST' }, next: pathOf(c) },
        note: 'The list is cancelled.',
      }),
    )
    .post('/lists/:id/resume', async c =>
      change(c, {
        ...{ path: '/resume', next: pathOf(c) },
        options: { method: 'POST', once: readNonce(await sentForm(c)) },
        note: 'The list goes on.',
      }),
    )
    .post('/lists/:id/delete', c =>
      change(c, {
        ...{ path: '', options: { method: 'DELETE' }, next: '/lists' },
        note: 'The list is deleted, with its addresses and results.',
      }),
    )
}

const idOf = (c: Context<Env>) => encodeURIComponent(c.req.param('id') ?? '')
const pathOf = (c: Context<Env>) => `/lists/${idOf(c)}`
const apiPathOf = (c: Context<Env>) => `/v1/jobs/${idOf(c)}`
