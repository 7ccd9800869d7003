import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Key, KeyAnswer, KeyList, RotatedKey } from '../../client/types.ts'
import { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import {
  confirmed,
  form,
  nonceField,
  problemWith,
  readNonce,
  select,
  sentForm,
} from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice, Refusal } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { dropToken, leaveNote } from '../session/cookie.ts'
import { bodyOf, fields, readTyped, sentenceOf, type Typed, typedOf } from './key-form.ts'
import { secretPage } from './secret-page.ts'
import { isDone } from './table.ts'

/** One key: changing, rotating and revoking it. */
export function changeRoutes(deps: DashboardDeps): Hono<Env> {
  const { settings } = deps
  return new Hono<Env>()
    .get('/keys/:id', async c => keyPage(c, deps, { key: await keyOf(c) }))
    .post('/keys/:id', async c => {
      const key = await keyOf(c)
      const typed = readTyped(await sentForm(c))
      const body = patchOf(key, typed)
      const changed = await c
        .get('api')
        .ask<KeyAnswer>(pathOf(key), { method: 'PATCH', body })
        .catch(problemWith)
      if (changed instanceof ApiProblem) return keyPage(c, deps, { key, typed, problem: changed })
      leaveNote(c, `The key “${changed.data.name}” is changed, from its next request on.`)
      return c.redirect('/keys', 303)
    })
    .post('/keys/:id/rotate', async c => {
      const key = await keyOf(c)
      const sent = await sentForm(c)
      const body = { grace_period_seconds: Number(sent.text('grace')) }
      const rotated = await c
        .get('api')
        .ask<RotatedKey>(`${pathOf(key)}/rotate`, { body, once: readNonce(sent) })
        .catch(problemWith)
      if (rotated instanceof ApiProblem) return keyPage(c, deps, { key, problem: rotated })
      const { data } = rotated
      const note =
        body.grace_period_seconds === 0
          ? 'The old one opens nothing any more.'
          : html`The old one goes on until ${time(data.previous_key_expires_at)}: bring the new one everywhere until then.`
      return secretPage(c, settings.baseUrl, { key: data, title: 'The new key', note })
    })
    .post('/keys/:id/revoke', async c => {
      const key = await keyOf(c)
      const query = { force: c.req.query('force') }
      const refused = await c
        .get('api')
        .ask(pathOf(key), { method: 'DELETE', query })
        .catch(problemWith)
      if (refused instanceof ApiProblem) return keyPage(c, deps, { key, problem: refused })
      if (isOwn(c, key)) {
        dropToken(c)
        return c.redirect('/sign-in', 303)
      }
      leaveNote(c, `The key “${key.name}” is revoked: it opens nothing any more.`)
      return c.redirect('/keys', 303)
    })
}

const pathOf = ({ id }: Key) => `/v1/keys/${encodeURIComponent(id)}`

/** There are at most a few hundred. */
const keysOf = async (c: Context<Env>): Promise<readonly Key[]> =>
  (await c.get('api').ask<KeyList>('/v1/keys')).data.keys

export async function keyOf(c: Context<Env>, id = c.req.param('id')): Promise<Key> {
  const key = (await keysOf(c)).find(one => one.id === id)
  if (key !== undefined) return key
  throw new Refusal(404, 'There is no such key: it may have been revoked meanwhile.')
}

/** A time that was not touched is left out: seconds, which the form does not show, would go, and one gone by is refused. */
function patchOf(key: Key, typed: Typed) {
  const { expires_at, ...rest } = bodyOf(typed)
  return typed.expires === typedOf(key).expires ? rest : { ...rest, expires_at }
}

const isOwn = (c: Context<Env>, { id }: Key) => id === c.get('user').keyId

type Shown = { readonly key: Key; readonly typed?: Typed; readonly problem?: ApiProblem }

async function keyPage(
  c: Context<Env>,
  deps: DashboardDeps,
  { key, typed = typedOf(key), problem }: Shown,
): Promise<Response> {
  const inUse = (await keysOf(c)).filter(one => !isDone(one, deps.clock.now()))
  const isLast = inUse.length === 1 && inUse[0]?.id === key.id
  const body = html`
    ${problem === undefined ? NOTHING : notice('bad', sentenceOf(problem))}
    ${isOwn(c, key) ? notice('info', OWN) : NOTHING}
    <p><code>${key.prefix}…${key.hint}</code>, made ${time(key.created_at)}, last used ${time(key.last_used_at, 'never')}</p>
    ${form(c, `/keys/${key.id}`, html`${fields(c, typed)}<button class="primary">Change the key</button>`)}
    ${rotation(c, deps, key)} ${revocation(c, key, isLast)}`
  const status = (problem?.status ?? 200) as ContentfulStatusCode
  return page(c, { title: `Key “${key.name}”`, body, status })
}

const LAST =
  'It is the last key of the account: nobody can sign in or use the API after that, until whoever runs the service makes another key by “ev keys create”.'

const OWN =
  'You are signed in with this key. If you take the scope “dashboard” from it, or have it expire, you are signed out; without “keys:write” you can no longer change keys here.'

const GRACES = [
  { value: '0', label: 'ends at once' },
  { value: '3600', label: 'goes on for 1 hour' },
  { value: '86400', label: 'goes on for 24 hours', checked: true },
  { value: '604800', label: 'goes on for 7 days' },
]

function rotation(c: Context<Env>, { random }: DashboardDeps, key: Key): Html {
  const sessions = isOwn(c, key)
    ? 'This session goes on; others that were begun with it end.'
    : 'Sessions that were begun with it end.'
  return html`
    <h2>Rotate it</h2>
    <p>A new key takes the place of this one: when somebody may have seen it, or now and then. Its name, scopes and limits
      stay. ${sessions}</p>
    ${form(
      c,
      `/keys/${key.id}/rotate`,
      html`${nonceField(random)}<div class="row">
        ${select({ label: 'The old one', name: 'grace', choices: GRACES })}
        <button>Rotate the key</button></div>`,
    )}`
}

function revocation(c: Context<Env>, key: Key, isLast: boolean): Html {
  const end = `“${key.name}” opens nothing from then on, and cannot be brought back.`
  const question = isOwn(c, key)
    ? `${end} You are signed in with it: you will be signed out.`
    : `${end} Whoever is signed in with it is signed out.`
  const last = isLast ? ` ${LAST}` : ''
  return html`
    <h2>Revoke it</h2>
    <p>When nothing asks with it any more, or it must not.</p>
    ${confirmed(c, {
      ...{
        action: `/keys/${key.id}/revoke${isLast ? '?force=true' : ''}`,
        label: 'Revoke the key',
      },
      question: `${question}${last}`,
      yes: 'Yes, revoke it',
    })}`
}
