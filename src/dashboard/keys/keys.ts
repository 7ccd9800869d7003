import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { CreatedKey, KeyList } from '../../client/types.ts'
import { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { boxes, form, nonceField, problemWith, readNonce, sentForm } from '../page/form.ts'
import { NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { primaryLink } from '../page/parts.ts'
import { may } from '../session/signed-in.ts'
import { changeRoutes, keyOf } from './change.ts'
import {
  bodyOf,
  fields,
  KEYS,
  newKey,
  newPublishableKey,
  publishableBodyOf,
  publishableFields,
  readTyped,
  sentenceOf,
  type Typed,
} from './key-form.ts'
import { secretPage } from './secret-page.ts'
import { keyTable } from './table.ts'

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
  const sentence = `You are signed in with the key “${user.keyName}”, which lacks the scope “keys:write”. Sign in with a key that has it to view and manage keys. The administrator can create one with ev keys create.`
  return page(c, { title: 'API keys', body: notice('info', sentence), status: 403 })
}

const PUBLISHABLE_INTRO = html`
  <p>For forms on websites. The key may be part of the page: it can only verify addresses of forms, on the websites that you allow.</p>`

const SECRET_INTRO = html`
  <p>For programs, scripts and people. For a form on a website, <a href="/keys/new-publishable">create a publishable key</a>.</p>`

type Shown = {
  readonly typed: Typed
  readonly publishable?: boolean
  readonly test?: boolean
  readonly once?: string | undefined
  readonly problem?: ApiProblem
}

const testField = (isChecked: boolean) =>
  boxes('Sandbox', 'test', [
    {
      ...{ value: 'on', label: 'Test key', checked: isChecked },
      hint: 'All its requests are simulated and cost no credits.',
    },
  ])

function newPage(c: Context<Env>, { random }: DashboardDeps, shown: Shown): Promise<Response> {
  const { typed, publishable = false, test = c.get('user').isTest, problem } = shown
  const content = publishable
    ? html`<input type="hidden" name="publishable" value="true" />${publishableFields(typed)}`
    : html`${fields(c, typed)}${testField(test)}`
  const body = html`
    ${publishable ? PUBLISHABLE_INTRO : SECRET_INTRO}
    ${problem === undefined ? NOTHING : notice('bad', sentenceOf(problem))}
    <div class="card">${form(c, '/keys', html`${nonceField(random, shown)}${content}<button class="primary">Create key</button>`)}</div>`
  const status = (problem?.status ?? 200) as ContentfulStatusCode
  return page(c, {
    title: publishable ? 'New publishable key' : 'New key',
    back: KEYS,
    body,
    status,
  })
}
