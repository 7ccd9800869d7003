import type { Context } from 'hono'
import { html } from 'hono/html'
import type { HistoryPage } from '../../client/types.ts'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { toClass } from '../../engine/verdict/verdict.ts'
import { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { reasonCell } from '../page/reason.ts'
import { badge, time } from '../page/text.ts'
import { may } from '../session/signed-in.ts'
import { verifyForm } from './ask-form.ts'

const SHOWN = 10
/** By then the books, which write in groups, have what was verified. */
const WRITTEN_MS = 400

/** What was verified one by one of late, to be verified again by one click. A script has it brought up to date. */
export async function recent(c: Context<Env>): Promise<Html> {
  if (!may(c.get('user'), 'account:read')) return NOTHING
  return html`
    <section id="recent" hx-get="/verify/recent" hx-trigger="verified from:body delay:${WRITTEN_MS}ms" hx-swap="outerHTML">
      <h2>Verified one by one of late</h2>
      ${await table(c)}
    </section>`
}

async function table(c: Context<Env>): Promise<Html> {
  const found = await latest(c)
  if (found instanceof ApiProblem) return notice('warn', found.message)
  if (found.length === 0) {
    return html`<p>Nothing yet: what you verify here, or by the API, is listed here afterwards.</p>`
  }
  return html`
    <div class="scroll"><table>
      <thead><tr>
        <th scope="col">Address</th><th scope="col">Class</th><th scope="col">Reason</th><th scope="col">When</th>
        <th scope="col"><span class="unseen">Again</span></th>
      </tr></thead>
      <tbody>${found.map(one => line(c, one))}</tbody>
    </table></div>`
}

type Item = HistoryPage['data']['items'][number]

/** The page is there without it, so that a limit does not take it away. */
async function latest(c: Context<Env>): Promise<readonly Item[] | ApiProblem> {
  try {
    const query = { source: 'single', limit: SHOWN }
    return (await c.get('api').ask<HistoryPage>('/v1/history', { query })).data.items
  } catch (error) {
    if (error instanceof ApiProblem) return error
    throw error
  }
}

const line = (c: Context<Env>, { email, reason, created_at: at }: Item) => html`
  <tr>
    <td class="long">${email}</td><td>${badge(toClass(VERDICT_BY_REASON[reason]))}</td><td>${reasonCell(reason)}</td><td>${time(at)}</td>
    <td>${verifyForm(c, { email, sandbox: false, again: false }, html`Again<span class="unseen"> for ${email}</span>`)}</td>
  </tr>`
