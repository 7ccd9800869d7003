import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Key } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { empty } from '../page/notice.ts'
import { time } from '../page/text.ts'

/** Renders the keys of an account; `now` is epoch ms. */
export const keyTable = (c: Context<Env>, keys: readonly Key[], now: number): Html => html`
  <div class="scroll"><table class="keys">
    <thead><tr>
      <th scope="col">Name and key</th><th scope="col">Scopes</th><th scope="col">Allowed from</th><th scope="col">Limit</th>
      <th scope="col">Created</th><th scope="col">Last used</th><th scope="col">Expires</th>
    </tr></thead>
    <tbody>${keys.map(key => line(c, key, now))}</tbody>
  </table></div>
  ${keys.length > 1 ? NOTHING : SECOND_KEY_HINT}`

const line = (c: Context<Env>, key: Key, now: number) => html`
  <tr>
    <th scope="row"><a href="/keys/${key.id}">${key.name}</a>
      ${key.id === c.get('user').keyId ? html`<small>this session</small>` : NOTHING}
      <br /><code>${key.prefix}…${key.hint}</code></th>
    <td>${key.scopes.includes('*') ? 'all' : key.scopes.join(', ')}</td>
    <td>${allowedFrom(key)}</td>
    <td>${limitOf(key)}</td>
    <td>${time(key.created_at)}</td>
    <td>${time(key.last_used_at, 'never')}</td>
    <td>${time(key.expires_at, 'never')}
      ${isDone(key, now) ? html`<span class="badge is-bad">expired</span>` : NOTHING}</td>
  </tr>`

const limitOf = ({ rate_limit_per_minute: limit }: Key) =>
  limit === null ? 'as the plan' : `${formatNumber(limit)} per minute`

export const isDone = ({ expires_at: at }: Key, now: number) => at !== null && Date.parse(at) <= now

/** The page of the key shows all entries. */
const ENTRIES_SHOWN_MAX = 3

function allowedFrom({ allowed_ips: ips, allowed_domains: sites }: Key): string {
  const all = [...ips, ...sites]
  if (all.length === 0) return 'anywhere'
  const left = all.length - ENTRIES_SHOWN_MAX
  const shown = all.slice(0, ENTRIES_SHOWN_MAX).join(', ')
  return left > 0 ? `${shown} and ${left} more` : shown
}

const SECOND_KEY_HINT = empty({
  title: 'Use one key per application',
  text: 'Give each application, script and colleague a key of its own with only the scopes it needs. You can then see which one makes requests, and revoke one without affecting the others.',
  action: html`<a class="button primary" href="/keys/new">Create key</a>`,
})
