import { expect, test } from 'vitest'
import { SESSIONS_MAX } from '../../src/accounts/session-store.ts'
import { createTestDashboard } from '../support/dashboard.ts'

// Sessions of keys, as browsers open them, on both databases.

type Dashboard = Awaited<ReturnType<typeof createTestDashboard>>

/** Signs in with a key, and returns the cookies of the new session. */
async function signedIn({ cookies, signIn }: Dashboard, key?: string) {
  cookies.clear()
  await signIn(key)
  return new Map(cookies)
}

/** Whether a page is shown to these cookies, which counts as activity. */
async function isSignedIn({ cookies, get }: Dashboard, session: ReadonlyMap<string, string>) {
  cookies.clear()
  for (const [name, value] of session) cookies.set(name, value)
  return (await get('/sessions')).status === 200
}

test('a session lasts no longer than the secret that opened it, or than an earlier end of it', async () => {
  const dashboard = await createTestDashboard({ signIn: false })
  const { json, clock, addKey } = dashboard
  const key = await addKey()
  const rotate = (grace_period_seconds: number) =>
    json('/v1/keys/key_2/rotate', { body: { grace_period_seconds } })
  await rotate(3_600)
  const old = await signedIn(dashboard, key)
  await clock.advance(60_000)
  expect(await isSignedIn(dashboard, old)).toBe(true)
  await clock.advance(3_600_000)
  expect(await isSignedIn(dashboard, old)).toBe(false)
})

test('a key that is rotated ends its sessions; one that is not its account does not', async () => {
  const dashboard = await createTestDashboard({ signIn: false })
  const { request, addKey, addAccount } = dashboard
  const key = await addKey()
  const [own, other] = [await signedIn(dashboard, key), await signedIn(dashboard)]
  await addAccount('acc_2')
  const foreign = await addKey({ accountId: 'acc_2' })
  const revoke = (by?: string) =>
    request('/v1/keys/key_2', { method: 'DELETE', ...(by && { key: by }) })
  expect((await revoke(foreign)).status).toBe(404)
  expect(await isSignedIn(dashboard, own)).toBe(true)
  expect((await request('/v1/keys/key_2/rotate', { method: 'POST' })).status).toBe(200)
  expect(await isSignedIn(dashboard, own)).toBe(false)
  expect(await isSignedIn(dashboard, other)).toBe(true)
})

test('the sessions of one key are limited in number, and those seen longest ago end', async () => {
  const dashboard = await createTestDashboard({ signIn: false, settings: { limits: false } })
  const { clock, addKey } = dashboard
  const other = await signedIn(dashboard, await addKey())
  const sessions: ReadonlyMap<string, string>[] = []
  for (let n = 0; n < SESSIONS_MAX; n++) {
    sessions.push(await signedIn(dashboard))
    await clock.advance(61_000)
  }
  const [first = other, second = other, third = other] = sessions
  expect(await isSignedIn(dashboard, first)).toBe(true)
  await clock.advance(61_000)
  const latest = await signedIn(dashboard)
  const there = []
  for (const one of [first, second, third, latest, other]) {
    there.push(await isSignedIn(dashboard, one))
  }
  expect(there).toEqual([true, false, true, true, true])
})
