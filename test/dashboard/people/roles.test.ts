import { describe, expect, test } from 'vitest'
import type { Scope } from '../../../src/accounts/key-rights.ts'
import { ROLES, type Role, roleRights } from '../../../src/accounts/people/role.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { addOneOfEverything } from '../../support/owned-rows.ts'
import { hiddenField, invite, join, signInAs, submit } from '../../support/people.ts'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>

/** What each role may do; admins may do everything in their account. */
const ALLOWED: Readonly<Record<Exclude<Role, 'admin'>, readonly RegExp[]>> = {
  member: [
    /^GET \/v1\/(jobs|webhooks|events|feedback|account|history|stats|limits|credits|schedules|people|verify|domains)/,
    /^(POST|PATCH|PUT|DELETE) \/v1\/(verify|jobs|webhooks|feedback|schedules)/,
  ],
  viewer: [
    /^GET \/v1\/(jobs|webhooks|events|feedback|account|history|stats|limits|credits|schedules|people|verify\/bulk)/,
    // A link with the rights to read.
    /^POST \/v1\/jobs\/\{id\}\/download_url/,
  ],
}

/** Operations that need no key, or a key of another kind. */
const NOT_OF_ROLES = /\/v1\/(feedback\/\{provider\})/

/** Every operation of the document, with the method and the path. */
async function listOperations({ json }: TestDashboard) {
  const { paths } = (await json('/openapi.json')) as { paths: Record<string, object> }
  return Object.entries(paths)
    .filter(([path]) => path.startsWith('/v1/') && !NOT_OF_ROLES.test(path))
    .flatMap(([path, methods]) =>
      Object.keys(methods).map(method => ({ method: method.toUpperCase(), path })),
    )
}

/** The session of a person, as the dashboard passes it to the API. */
async function sessionOf(services: TestDashboard, role: Role) {
  const { id } = await join(services, { role, email: `${role}@shop.example`, name: role })
  const { id: sessionId } = await services.database.db
    .selectFrom('session')
    .select('id')
    .where('key_id', '=', id)
    .executeTakeFirstOrThrow()
  return { keyId: id, sessionId, secretExpiresAt: null }
}

describe.each(ROLES)('a person with the role %s', role => {
  test('may call the operations of the role and no others', async () => {
    const services = await createTestDashboard({ signIn: false })
    const session = await sessionOf(services, role)
    const operations = await listOperations(services)
    expect(operations.length).toBeGreaterThan(60)
    for (const { method, path } of operations) {
      // An invalid body and unknown IDs: the permission is checked before both.
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: { '?': 1 } }
      const url = path.replaceAll(/\{\w+\}/g, 'none')
      const { status } = await services.settled(
        services.request(url, { method, key: null, session, ...body }),
      )
      // Of an admin account, which this one is not.
      const isForOthers = /^\/v1\/(accounts|plans)/.test(path)
      const isAllowed =
        !isForOthers &&
        (role === 'admin' || ALLOWED[role].some(one => one.test(`${method} ${path}`)))
      expect([method, path, status === 403]).toEqual([method, path, !isAllowed])
    }
  })

  test('changes nothing on a page that the role does not allow', async () => {
    const services = await createTestDashboard({ signIn: false, works: true })
    const owned = await addOneOfEverything(services)
    await join(services, { role, email: `${role}@shop.example` })
    const { job: lists, webhook: webhooks, person: people } = owned
    const ids = { lists, webhooks, keys: 'key_1', people }
    const changes = services.pages.routes.filter(
      ({ method, path }) =>
        method === 'POST' &&
        /^\/(lists|webhooks|keys|people|account|feedback)\b/.test(path) &&
        path !== '/lists/upload',
    )
    expect(changes.length).toBeGreaterThan(15)
    const before = await stateOf(services)
    const answers: [path: string, status: number][] = []
    for (const { path } of role === 'viewer' ? changes : []) {
      const filled = path
        .replace(':delivery', owned.delivery)
        .replace(/\/([^/]+)\/:id/, (_, kind: string) => `/${kind}/${(ids as never)[kind]}`)
      const { status } = await services.post(filled, FIELDS)
      answers.push([path, status])
    }
    // The page of the preview says that the role lacks the scope.
    expect(answers.filter(([path, status]) => status < 400 && path !== '/lists/new')).toEqual([])
    expect(await stateOf(services)).toEqual(before)
    const { text } = await services.get('/overview')
    expect(text.includes('href="/audit"')).toBe(role === 'admin')
    expect((await services.get('/people')).status).toBe(200)
    expect((await services.get('/keys')).status).toBe(role === 'admin' ? 200 : 403)
  })

  test('reads of the role where a scope is missing, never of a key', async () => {
    const services = await createTestDashboard({ signIn: false, works: true })
    const owned = await addOneOfEverything(services)
    await join(services, { role, email: `${role}@shop.example` })
    const paths = [
      ...['/account', '/keys', '/audit', '/verify', '/lists', '/lists/new', '/feedback'],
      ...['/feedback/sources', '/webhooks', `/webhooks/${owned.webhook}`],
    ]
    const pages = await Promise.all(paths.map(path => services.get(path)))
    const sent = await services.post('/lists/new', FIELDS)
    for (const { text } of [...pages, sent]) {
      expect(text).not.toMatch(/key[^.<]*(lacks|does not have) the scope|sign in with a key/i)
    }
    const denials = pages.map(({ text }) => /Your role[^.<]*the scope/.test(text))
    expect(denials.includes(true)).toBe(role !== 'admin')
  })

  test('has no more scopes than the roles above it', () => {
    const higher = ROLES.slice(0, ROLES.indexOf(role))
    for (const scope of roleRights(role).scopes) {
      for (const one of higher) {
        const { scopes } = roleRights(one)
        expect([one, scope, scopes.some(own => own === '*' || own === scope)]).toEqual([
          ...[one, scope, true],
        ])
      }
    }
  })
})

const FIELDS = {
  grace: '0',
  active: 'false',
  name: 'x',
  url: 'https://8.8.8.8/',
  email: 'x@y.example',
  scopes: 'jobs:read',
  events: 'batch.completed',
  role: 'viewer',
  provider: 'postmark',
}

async function stateOf({ database: { db } }: TestDashboard): Promise<unknown> {
  const tables = ['job', 'webhook', 'account', 'person', 'feedback_source', 'api_key'] as const
  return Promise.all(tables.map(table => db.selectFrom(table).selectAll().execute()))
}

describe('two people in one account', () => {
  test('of whom one is an admin: invite, change, reset and remove each other as the roles allow', async () => {
    const services = await createTestDashboard({ signIn: false })
    const bob = await join(services, { name: 'Bob', email: 'bob@shop.example', role: 'member' })
    const ann = await join(services)
    const page = await services.get('/people')
    expect(page.text).toMatch(/Ann Lee<\/a> <small>you<\/small>/)
    expect(page.text).toContain('bob@shop.example')
    const once = hiddenField(page, '_once')
    const fields = { name: 'Cid', email: 'cid@shop.example', role: 'viewer', _once: once }
    const invited = await services.post('/people', fields)
    const [link = ''] = /\/invitation\/[a-z0-9]{40}/.exec(invited.text) ?? []
    expect(link).not.toBe('')
    // A double click invites once.
    expect((await services.post('/people', fields)).text).toContain(link)
    expect((await services.get('/people')).text).not.toContain(link)
    expect((await services.post(`/people/${bob.id}`, { name: 'Bob', role: 'viewer' })).status).toBe(
      303,
    )
    expect((await services.post(`/people/${bob.id}/remove`)).status).toBe(303)
    services.cookies.clear()
    expect((await signInAs(services, 'bob@shop.example')).status).toBe(401)
    const entries = (await services.json('/v1/audit')) as { data: { items: object[] } }
    for (const action of ['person.invited', 'person.updated', 'person.removed']) {
      expect(entries.data.items).toContainEqual(
        expect.objectContaining({ action, actor: 'session', person_id: ann.id }),
      )
    }
  })

  test('keep an admin: nobody removes or demotes themselves', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { id } = await join(services)
    expect((await services.post(`/people/${id}`, { name: 'Ann', role: 'viewer' })).status).toBe(400)
    expect((await services.post(`/people/${id}/remove`)).status).toBe(400)
    expect((await services.get('/people')).text).toContain('Ann Lee')
  })
})

describe('a key', () => {
  test.each<[scopes: Scope[], role: Role, status: number]>([
    [['people:write', 'account:read'], 'viewer', 403],
    [[...(roleRights('viewer').scopes as Scope[]), 'people:write'], 'viewer', 201],
    [[...(roleRights('viewer').scopes as Scope[]), 'people:write'], 'member', 403],
    [[...(roleRights('member').scopes as Scope[]), 'people:write'], 'member', 201],
    [[...(roleRights('member').scopes as Scope[]), 'people:write'], 'admin', 403],
    [['*'], 'admin', 201],
  ])('with %j inviting a %s gets %i', async (scopes, role, status) => {
    const services = await createTestDashboard({ signIn: false })
    const key = await services.addKey({ scopes })
    const body = { name: 'Cid', email: 'cid@shop.example', role }
    expect((await services.request('/v1/people', { key, body })).status).toBe(status)
    // Nor does it get a link for an admin, or take the role away.
    const { id } = await invite(services)
    const isAdmin = scopes.includes('*')
    const asked = [
      await services.request(`/v1/people/${id}/link`, { key, method: 'POST' }),
      await services.request(`/v1/people/${id}`, {
        key,
        method: 'PATCH',
        body: { role: 'viewer' },
      }),
      await services.request(`/v1/people/${id}/two-factor`, { key, method: 'DELETE' }),
      await services.request(`/v1/people/${id}`, { key, method: 'DELETE' }),
    ]
    for (const { status: answered } of asked) expect(answered === 403).toBe(!isAdmin)
  })

  test('with a restriction cannot invite people, who have none', async () => {
    const services = await createTestDashboard({ signIn: false })
    const key = await services.addKey({ allowedIps: ['192.0.2.1'] })
    const body = { name: 'Cid', email: 'cid@shop.example', role: 'viewer' }
    expect((await services.request('/v1/people', { key, body, ip: '192.0.2.1' })).status).toBe(403)
  })

  test('of another account does not see the people, nor whether an address is one of them', async () => {
    const services = await createTestDashboard({ signIn: false })
    await invite(services)
    await services.addAccount('acc_2')
    const key = await services.addKey({ accountId: 'acc_2', id: 'key_stranger' })
    expect((await services.json('/v1/people', { key })).data).toEqual({ people: [], total: 0 })
    const body = { name: 'Ann', email: 'ann@shop.example', role: 'viewer' }
    expect((await services.request('/v1/people', { key, body })).status).toBe(201)
    expect((await services.request('/v1/people', { key, body })).status).toBe(400)
    expect((await submit(services, '/sign-in', { email: '', password: '' })).status).toBe(401)
  })
})
