import type { Context } from 'hono'
import { html } from 'hono/html'
import type { CreatedKey } from '../../client/types.ts'
import { FORM_SCRIPT } from '../asset.ts'
import type { Env } from '../deps.ts'
import type { Html } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { card } from '../page/parts.ts'
import { copyable } from '../page/text.ts'

/**
 * Shows the secret of a key once, in the response to its form; never in a URL, cookie or log line.
 */
export function secretPage(
  c: Context<Env>,
  baseUrl: string,
  { key, title, note }: { key: CreatedKey['data']; title: string; note: Html | string },
): Promise<Response> {
  const use = key.publishable
    ? html`<p>Add the script to the page of the form, and <code>data-ev</code> to its field:</p><pre>${formOf(baseUrl, key.key)}</pre>`
    : html`<p>Send it with each request:</p><pre>${exampleOf(baseUrl)}</pre>`
  const body = html`
    <section class="card">
      <p>${key.publishable ? 'The key' : 'Secret of the key'} “${key.name}”. It is not shown again: ev stores only its hash.</p>
      <p>${copyable(key.key)}</p>
      <p>${note}</p>
    </section>
    ${card({ title: 'Use the key', body: use })}
    <p><a class="button primary" href="/keys">I have saved it</a></p>`
  return page(c, { title, body, hasAlerts: false })
}

const formOf = (baseUrl: string, key: string) =>
  `<script src="${baseUrl}${FORM_SCRIPT}" data-key="${key}" defer></script>
<input type="email" name="email" data-ev>`

/** Reads the key from a variable, which keeps it out of the shell history. */
const exampleOf = (baseUrl: string) => `curl ${baseUrl}/v1/verify/single \\
  -H "Authorization: Bearer $EV_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"email": "bob@example.com"}'`
