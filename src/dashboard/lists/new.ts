import type { Context } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { FILE_BYTES_MAX } from '../../jobs/upload/store-upload.ts'
import { formatMebibytes } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import type { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { field } from '../page/form.ts'
import { nonceField, nonceTarget } from '../page/form-nonce.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import type { Refusal } from '../page/refusal.ts'
import { csrfField } from '../session/csrf.ts'
import { may } from '../session/signed-in.ts'

/** Why a list is not taken, and what its form was numbered with. */
export type Refused = {
  readonly problem: Refusal | ApiProblem
  readonly once?: string | undefined
}

/** Where a list is sent from; `refused`: why what was sent before is not taken. */
export function newListPage(
  c: Context<Env>,
  random: Random,
  refused?: Refused,
): Response | Promise<Response> {
  const title = 'New list'
  if (!may(c.get('user'), 'verify:bulk')) return page(c, { title, body: notAllowed(c) })
  const body = html`
    ${refused === undefined ? NOTHING : notice('bad', refused.problem.message)}
    <p class="scripted">Look at what is found in a list first. Nothing is verified, and nothing is charged, before you start it.</p>
    ${listForm(c, random, refused)}`
  const status = (refused?.problem.status ?? 200) as ContentfulStatusCode
  return page(c, { title, body, scripts: ['upload.js'], status })
}

/** The token comes first, so that a form of somebody else is refused before its file is read. */
const listForm = (c: Context<Env>, random: Random, refused?: Refused): Html => html`
  <form method="post" action="/lists/new" enctype="multipart/form-data" id="upload" data-max="${FILE_BYTES_MAX}"
    hx-post="/lists/new?dry_run=true" hx-trigger="submit, change from:#preview" hx-encoding="multipart/form-data"
    hx-target="#preview" hx-disabled-elt="#upload button">
    ${csrfField(c)}
    ${field({ label: 'Name', name: 'name', hint: 'What you call the list; left empty, the name of the file.' })}
    <p><label class="tick"><input type="checkbox" name="sandbox" /> Sandbox: simulated answers, nobody is asked, costs nothing</label></p>
    <p class="field drop">
      <label for="file">File</label>
      <input id="file" name="file" type="file" accept=".csv,.tsv,.txt,text/csv,text/plain,text/tab-separated-values"
        aria-describedby="file-hint" />
      <small id="file-hint">CSV, TSV, or one address a line; at most ${formatMebibytes(FILE_BYTES_MAX)} and 1,000,000 rows.
        <span class="scripted">Or drop it anywhere on this page.</span></small>
    </p>
    <p class="field">
      <label for="rows">Or paste rows</label>
      <textarea id="rows" name="rows" rows="6" spellcheck="false" autocomplete="off" aria-describedby="rows-hint"></textarea>
      <small id="rows-hint">One address a line, or rows with several columns.</small>
    </p>
    <button class="primary scripted">Look at it</button>
    <noscript><button class="primary">Start</button></noscript>
    <div class="sending" id="sending" role="status"></div>
    <div id="preview" aria-live="polite">${nonceTarget(nonceField(random, refused))}</div>
  </form>`

const notAllowed = (c: Context<Env>) =>
  notice(
    'info',
    `The key “${c.get('user').keyName}” lacks the scope verify:bulk, so no list can be sent with it. Sign in with a key that has it, or give it to this one under Keys.`,
  )
