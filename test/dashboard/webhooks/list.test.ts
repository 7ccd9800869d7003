import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../../support/dashboard.ts'
import { EVIL, endpoint, HARMLESS } from './endpoint.ts'

describe('the webhooks of an account', () => {
  test('that has none: what a program would get, and how to make one', async () => {
    const { text, status } = await (await createTestDashboard()).get('/webhooks')
    expect(status).toBe(200)
    expect(text).toContain('No webhooks yet')
    expect(text).toContain('href="/webhooks/new"')
    expect(text).toContain('&quot;event&quot;: &quot;batch.completed&quot;')
    expect(text).toContain('curl -X POST https://ev.test/v1/webhooks')
    expect(text).toContain('href="/docs#/Webhooks"')
  })

  test('stand in a table, each with its events, whose it is, and a way to its page', async () => {
    const { get, path } = await endpoint({ description: 'Of billing', events: ['batch.failed'] })
    const { text } = await get('/webhooks')
    expect(text).toContain(`<a href="${path}">https://app.test/hook</a>`)
    expect(text).toContain('Of billing')
    expect(text).toContain('<code>batch.failed</code>')
    expect(text).not.toContain('No webhooks yet')
  })

  test('say how they stand: on, off by hand, failing and since when, switched off and why', async () => {
    const home = await endpoint()
    const state = async () =>
      /<span class="badge is-\w+">.*?<\/td>/s
        .exec((await home.get('/webhooks')).text)?.[0]
        .replaceAll(/<[^>]+>|\s+/g, ' ')
        .replaceAll(/\s+/g, ' ')
        .trim()
    expect(await state()).toBe('enabled')
    await home.happen()
    home.receiver.answer(500)
    await home.attempt()
    expect(await state()).toBe('failing since 2026-06-01 12:00:00 UTC')
    await home.happen()
    home.receiver.answer(410)
    await home.attempt({ disabledCode: 'gone' })
    expect(await state()).toMatch(/^disabled by ev It answered 410 Gone/)
    await home.post(`${home.path}/switch`, { active: 'true' })
    expect(await state()).toBe('enabled')
    await home.post(`${home.path}/switch`, { active: 'false' })
    expect(await state()).toBe('disabled')
  })

  test('may be looked at, and not made, by a key that may only look', async () => {
    const home = await endpoint()
    await home.signIn(await home.addKey({ scopes: ['dashboard', 'webhooks:read'] }))
    const list = await home.get('/webhooks')
    expect(list.text).toContain(home.path)
    expect(list.text).toContain('your key lacks the scope “webhooks:write”')
    expect(list.text).not.toContain('/webhooks/new')
    const one = await home.get(home.path)
    expect(one.text).toContain('Deliveries')
    expect(one.text).not.toContain('<button class="primary">Save')
    const fields = { url: 'https://app.test/other', events: 'batch.failed', active: 'true' }
    expect((await home.post('/webhooks', fields)).status).toBe(403)
    expect((await home.post(`${home.path}/delete`)).status).toBe(403)
    expect((await home.json('/v1/webhooks')).data).toMatchObject({ total: 1 })
  })

  test('are closed to a key that lacks the scope, in a sentence', async () => {
    const home = await endpoint()
    await home.signIn(await home.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await home.get('/webhooks')
    expect(status).toBe(403)
    expect(text).toContain('webhooks:read')
    expect(text).not.toContain('app.test')
  })

  test('of another account are not there', async () => {
    const home = await endpoint()
    await home.addAccount('acc_2')
    await home.signIn(await home.addKey({ accountId: 'acc_2' }))
    expect((await home.get('/webhooks')).text).toContain('No webhooks yet')
    for (const path of [home.path, `${home.path}/deliveries/dlv_1`]) {
      expect((await home.get(path)).status).toBe(404)
    }
    const tries = ['', '/switch', '/test', '/secret', '/recover', '/delete'].map(async path => {
      const fields = {
        active: 'false',
        grace: '0',
        since: '2026-06-01T00:00',
        events: 'batch.failed',
      }
      return (await home.post(`${home.path}${path}`, { ...fields, url: 'https://app.test/x' }))
        .status
    })
    expect(await Promise.all(tries)).toEqual([404, 404, 404, 404, 404, 404])
  })

  test('show markup in their URLs and descriptions as text', async () => {
    const url = `https://app.test/hook?${EVIL.replaceAll(' ', '/')}"onfocus="alert(1)`
    const home = await endpoint({ url, description: EVIL })
    for (const path of ['/webhooks', home.path]) {
      const { text } = await home.get(path)
      expect(text).toContain(HARMLESS)
      expect(text).toContain('&quot;onfocus=&quot;alert(1)')
      expect(text).not.toMatch(/<img|"onfocus/)
    }
  })
})
