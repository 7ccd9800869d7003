import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Key } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { empty } from '../page/notice.ts'
import { table } from '../page/table.ts'
import { ago, statusBadge } from '../page/text.ts'

/** Renders the keys of an account; `now` is epoch ms. */
export const keyTable = (c: Context<Env>, keys: readonly Key[], now: number): Html => html`
  ${table({
    caption: 'API keys of this account',
    rows: keys,
    columns: [
      { label: 'Name', kind: 'name', cell: key => nameOf(c, key, now) },
      {
        label: 'Key',
        cell: ({ prefix, hint }) => html`<code class="nowrap">${prefix}…${hint}</code>`,
      },
      { label: 'Scopes', cell: ({ scopes }) => (scopes.includes('*') ? 'All' : scopes.join(', ')) },
      { label: 'Allowed from', cell: allowedFrom },
      { label: 'Rate limit', cell: limitOf },
      { label: 'Created', cell: ({ created_at: at }) => ago(at) },
      { label: 'Last used', cell: ({ last_used_at: at }) => ago(at, 'Never') },
      { label: 'Expires', cell: ({ expires_at: at }) => ago(at, 'Never') },
    ],
  })}
  ${keys.length > 1 ? NOTHING : SECOND_KEY_HINT}`

const nameOf = (c: Context<Env>, key: Key, now: number) => html`
  <a href="/keys/${key.id}">${key.name}</a>
  ${key.id === c.get('user').keyId ? html`<small>this session</small>` : NOTHING}
  ${key.publishable ? html`<small>publishable</small>` : NOTHING}
  ${key.test ? html`<small>test</small>` : NOTHING}
  ${isDone(key, now) ? statusBadge('bad', 'Expired') : NOTHING}`

const limitOf = ({ rate_limit_per_minute: limit }: Key) =>
  html`<span class="nowrap">${limit === null ? 'Plan limit' : `${formatNumber(limit)} per minute`}</span>`

export const isDone = ({ expires_at: at }: Key, now: number) => at !== null && Date.parse(at) <= now

/** The page of the key shows all entries. */
const ENTRIES_SHOWN_MAX = 3

function allowedFrom({ allowed_ips: ips, allowed_domains: sites }: Key): string {
  const all = [...ips, ...sites]
  if (all.length === 0) return 'Anywhere'
  const left = all.length - ENTRIES_SHOWN_MAX
  const shown = all.slice(0, ENTRIES_SHOWN_MAX).join(', ')
  return left > 0 ? `${shown} and ${left} more` : shown
}

const SECOND_KEY_HINT = empty({
  icon: 'key-round',
  title: 'Use one key per application',
  text: 'Give each application, script and colleague a key of its own with only the scopes it needs. You can then see which one makes requests, and revoke one without affecting the others.',
  action: html`<a class="button" href="/keys/new">New key</a>`,
})
