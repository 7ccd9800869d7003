import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import type { CreatedKey, Key, KeyAnswer, KeyList, RotatedKey } from '../client/types.ts'
import { ApiProblem } from './api.ts'
import type { DashboardDeps, Env } from './deps.ts'
import {
  bodyOf,
  fields,
  isDone,
  KEYS,
  keyTable,
  LABELS,
  newKey,
  newPublishableKey,
  publishableBodyOf,
  publishableFields,
  readTyped,
  secretPage,
  type Typed,
  typedOf,
} from './key-parts.ts'
import {
  boxes,
  confirmed,
  form,
  nonceField,
  problemWith,
  readNonce,
  select,
  sentForm,
} from './page/form.ts'
import { type Html, NOTHING } from './page/html.ts'
import { page } from './page/layout.ts'
import { notice, Refusal } from './page/notice.ts'
import { card, primaryLink } from './page/parts.ts'
import { ago, time } from './page/text.ts'
import { dropToken, redirectWithNote } from './session/cookie.ts'
import { explainMissingScope, may } from './session/signed-in.ts'

/** Routes that list and create the keys of an account. */
export function keyRoutes(deps: DashboardDeps): Hono<Env> {
  const { clock, settings } = deps
  const router = new Hono<Env>()
    .use('/keys/*', requireKeysScope)
    .get('/keys', async c => {
      const { data } = await c.get('api').ask<KeyList>('/v1/keys')
      const actions = primaryLink('/keys/new', 'New key', 'plus')
      return page(c, { title: 'API keys', actions, body: keyTable(c, data.keys, clock.now()) })
    })
    .get('/keys/new', async c =>
      newPage(c, deps, { typed: newKey(await keyOf(c, c.get('user').keyId)) }),
    )
    .get('/keys/new-publishable', async c => {
      const typed = newPublishableKey(await keyOf(c, c.get('user').keyId))
      return newPage(c, deps, { typed, publishable: true })
    })
    .post('/keys', async c => {
      const sent = await sentForm(c)
      const [typed, once] = [readTyped(sent), readNonce(sent)]
      const publishable = sent.text('publishable') === 'true'
      const test = sent.text('test') === 'on'
      const body = publishable
        ? { ...publishableBodyOf(typed), publishable }
        : { ...bodyOf(typed), ...(test && { test }) }
      const made = await c.get('api').ask<CreatedKey>('/v1/keys', { body, once }).catch(problemWith)
      if (made instanceof ApiProblem) {
        return newPage(c, deps, { typed, once, publishable, test, problem: made })
      }
      const note = publishable
        ? 'The key is not secret: it can only verify addresses of forms on the allowed websites.'
        : 'Store it in a password manager. Anyone who has the key can use its scopes.'
      return secretPage(c, settings.baseUrl, { key: made.data, title: 'Key created', note })
    })
  router.route('/', changeRoutes(deps))
  return router
}

/** Requires the scope `keys:write`, without which these pages show nothing. */
const requireKeysScope: MiddlewareHandler<Env> = async (c, next) => {
  const user = c.get('user')
  if (may(user, 'keys:write')) return next()
  const sentence =
    user.person === null
      ? `You are signed in with the key "${user.name}", which lacks the scope "keys:write". Sign in with a key that has it to view and manage keys. The administrator can create one with ev keys create.`
      : explainMissingScope(user, 'keys:write', 'viewing and managing keys requires')
  return page(c, { title: 'API keys', body: notice('info', sentence), status: 403 })
}

const PUBLISHABLE_INTRO = html`
  <p>For forms on websites. The key may be part of the page: it can only verify addresses of forms, on the websites that you allow.</p>`

const SECRET_INTRO = html`
  <p>For programs, scripts and people. For a form on a website, <a href="/keys/new-publishable">create a publishable key</a>.</p>`

type NewKeyPage = {
  readonly typed: Typed
  readonly publishable?: boolean
  readonly test?: boolean
  readonly once?: string | undefined
  readonly problem?: ApiProblem
}

const testField = (isChecked: boolean) =>
  boxes('Sandbox', 'test', [
    {
      value: 'on',
      label: 'Test key',
      checked: isChecked,
      hint: 'All its requests are simulated and cost no credits.',
    },
  ])

function newPage(c: Context<Env>, { random }: DashboardDeps, shown: NewKeyPage): Promise<Response> {
  const { typed, publishable = false, test = c.get('user').isTest, problem } = shown
  const content = publishable
    ? html`<input type="hidden" name="publishable" value="true" />${publishableFields(typed)}`
    : html`${fields(c, typed)}${testField(test)}`
  const body = html`
    ${publishable ? PUBLISHABLE_INTRO : SECRET_INTRO}
    <div class="card">${form(c, '/keys', html`${nonceField(random, shown)}${content}<button class="primary">Create key</button>`)}</div>`
  return page(c, {
    title: publishable ? 'New publishable key' : 'New key',
    back: KEYS,
    body,
    problem,
    labels: LABELS,
  })
}

/** Routes that show, change, rotate and revoke a key. */
function changeRoutes(deps: DashboardDeps): Hono<Env> {
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
      return redirectWithNote(
        c,
        '/keys',
        `Key "${changed.data.name}" updated. The changes apply from its next request.`,
      )
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
          ? 'The old secret no longer works.'
          : html`The old secret stays valid until ${time(data.previous_key_expires_at)}. Deploy the new one before then.`
      return secretPage(c, settings.baseUrl, { key: data, title: 'New secret', note })
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
      return redirectWithNote(c, '/keys', `Key "${key.name}" revoked. It no longer works.`)
    })
}

const pathOf = ({ id }: Key) => `/v1/keys/${encodeURIComponent(id)}`

/** An account has at most a few hundred keys. */
const keysOf = async (c: Context<Env>): Promise<readonly Key[]> =>
  (await c.get('api').ask<KeyList>('/v1/keys')).data.keys

/** Returns a key of the account; throws a 404 Refusal if there is none. */
async function keyOf(c: Context<Env>, id = c.req.param('id')): Promise<Key> {
  const key = (await keysOf(c)).find(one => one.id === id)
  if (key !== undefined) return key
  throw new Refusal(404, 'Key not found. It may have been revoked.')
}

/**
 * Omits an unchanged expiry: the form drops its seconds, and the API rejects a time in the past.
 */
function patchOf(key: Key, typed: Typed) {
  const { expires_at, ...rest } = key.publishable ? publishableBodyOf(typed) : bodyOf(typed)
  return typed.expires === typedOf(key).expires ? rest : { ...rest, expires_at }
}

const isOwn = (c: Context<Env>, { id }: Key) => id === c.get('user').keyId

type KeyPage = { readonly key: Key; readonly typed?: Typed; readonly problem?: ApiProblem }

async function keyPage(
  c: Context<Env>,
  deps: DashboardDeps,
  { key, typed = typedOf(key), problem }: KeyPage,
): Promise<Response> {
  const inUse = (await keysOf(c)).filter(one => !one.publishable && !isDone(one, deps.clock.now()))
  const isLast = inUse.length === 1 && inUse[0]?.id === key.id
  const body = html`
    ${isOwn(c, key) ? notice('info', OWN) : NOTHING}
    ${card({
      title: 'Settings',
      body: form(
        c,
        `/keys/${key.id}`,
        html`${key.publishable ? publishableFields(typed) : fields(c, typed)}<button class="primary">Save changes</button>`,
      ),
    })}
    <div class="grid">${rotation(c, deps, key)} ${revocation(c, key, isLast)}</div>`
  const [intro, labels] = [introOf(key), LABELS]
  return page(c, { title: key.name, back: KEYS, intro, body, problem, labels })
}

const introOf = ({ prefix, hint, publishable, test, created_at, last_used_at }: Key): Html =>
  html`<code>${prefix}…${hint}</code>${publishable ? ' · publishable' : ''}${test ? ' · test key, always in the sandbox' : ''} · created ${ago(created_at)} · ${last_used_at === null ? 'never used' : html`last used ${ago(last_used_at)}`}`

const LAST =
  'This is the last key of the account. Without it, the account cannot sign in or use the API until the administrator creates another key with ev keys create.'

const OWN =
  'You are signed in with this key. Removing the scope "dashboard" or letting the key expire signs you out. Without "keys:write" you can no longer manage keys here.'

const GRACES = [
  { value: '0', label: 'expires immediately' },
  { value: '3600', label: 'valid for 1 hour' },
  { value: '86400', label: 'valid for 24 hours', checked: true },
  { value: '604800', label: 'valid for 7 days' },
]

function rotation(c: Context<Env>, { random }: DashboardDeps, key: Key): Html {
  const sessions = isOwn(c, key)
    ? 'This session stays signed in; other sessions of the key end.'
    : 'Sessions of the key end.'
  return card({
    title: 'Rotate',
    body: html`
      <p>Issue a new secret, for example after a leak. Name, scopes and limits of the key do not change. ${sessions}</p>
      ${form(
        c,
        `/keys/${key.id}/rotate`,
        html`${nonceField(random)}<div class="row">
          ${select({ label: 'Old secret', name: 'grace', choices: GRACES })}
          <button>Rotate key</button></div>`,
      )}`,
  })
}

function revocation(c: Context<Env>, key: Key, isLast: boolean): Html {
  const effect = `"${key.name}" stops working immediately. This cannot be undone.`
  const question = isOwn(c, key)
    ? `${effect} You are signed in with it: you will be signed out.`
    : `${effect} Its sessions are signed out.`
  const last = isLast ? ` ${LAST}` : ''
  return card({
    title: 'Revoke',
    body: html`
      <p>Revoke a key that is no longer needed or was compromised.</p>
      ${confirmed(c, {
        action: `/keys/${key.id}/revoke${isLast ? '?force=true' : ''}`,
        label: 'Revoke key',
        question: `${question}${last}`,
        yes: 'Yes, revoke key',
      })}`,
  })
}
