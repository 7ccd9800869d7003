import { describe, expect, test } from 'vitest'
import { EVENT_KINDS } from '../../../src/webhooks/event-types.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { EVIL, endpoint, HARMLESS } from './endpoint.ts'

describe('the webhooks of an account', () => {
  test('show an example request and how to create one while there is none', async () => {
    const { text, status } = await (await createTestDashboard()).get('/webhooks')
    expect(status).toBe(200)
    expect(text).toContain('No webhooks yet')
    expect(text).toContain('href="/webhooks/new"')
    expect(text).toContain('&quot;event&quot;: &quot;batch.completed&quot;')
    expect(text).toContain('curl https://ev.test/v1/webhooks')
    expect(text).toContain('href="/docs/reference/webhooks"')
  })

  test('are a table with events, description and link', async () => {
    const { get, path } = await endpoint({ description: 'Of billing', events: ['batch.failed'] })
    const { text } = await get('/webhooks')
    expect(text).toContain(`<a href="${path}">Of billing</a>`)
    expect(text).toContain('<small>https://app.test/hook</small>')
    expect(text).toContain('<code>batch.failed</code>')
    expect(text).not.toContain('No webhooks yet')
  })

  test('show their success rate with a chart of the days, once there were attempts', async () => {
    const dashboard = await endpoint()
    expect((await dashboard.get('/webhooks')).text).not.toContain('class="spark"')
    expect((await dashboard.get(dashboard.path)).text).not.toContain(
      'Attempts in the last seven days',
    )
    await dashboard.happen()
    await dashboard.attempt()
    dashboard.receiver.answer(500)
    await dashboard.happen()
    await dashboard.attempt()
    const { text } = await dashboard.get('/webhooks')
    expect(text).toMatch(/data-label="Success rate">50.0%\s+<svg class="spark"/)
    const page = (await dashboard.get(dashboard.path)).text
    expect(page).toContain('<small>50.0% successful</small>')
    expect(page).toMatch(/2026-06-01<\/th>.*2 <small>50.0% successful<\/small><\/td>/s)
  })

  test('show their state: enabled, disabled, failing or disabled by ev', async () => {
    const dashboard = await endpoint()
    const state = async () =>
      /<span class="badge is-\w+">.*?<\/td>/s
        .exec((await dashboard.get('/webhooks')).text)?.[0]
        .replaceAll(/<[^>]+>|\s+/g, ' ')
        .replaceAll(/\s+/g, ' ')
        .trim()
    expect(await state()).toBe('Enabled')
    await dashboard.happen()
    dashboard.receiver.answer(500)
    await dashboard.attempt()
    expect(await state()).toBe('Failing since 2026-06-01 12:00 UTC')
    await dashboard.happen()
    dashboard.receiver.answer(410)
    await dashboard.attempt({ disabledCode: 'gone' })
    expect(await state()).toMatch(/^Disabled by ev It answered 410 Gone/)
    await dashboard.post(`${dashboard.path}/switch`, { active: 'true' })
    expect(await state()).toBe('Enabled')
    await dashboard.post(`${dashboard.path}/switch`, { active: 'false' })
    expect(await state()).toBe('Disabled')
  })

  test('come with a page of all event types, their fields and examples', async () => {
    const { text, status } = await (await createTestDashboard()).get('/webhooks/events')
    expect(status).toBe(200)
    for (const kind of EVENT_KINDS) expect(text).toContain(`<h2>${kind}</h2>`)
    expect(text).toContain('&quot;event&quot;: &quot;quota.warning&quot;')
    expect(text).toMatch(/<code>threshold_percent<\/code><\/th>\s*<td data-label="Type">integer</)
    expect(text).toContain('Requires an API key.')
  })

  test('are read-only for a key without webhooks:write', async () => {
    const dashboard = await endpoint()
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard', 'webhooks:read'] }))
    const list = await dashboard.get('/webhooks')
    expect(list.text).toContain(dashboard.path)
    expect(list.text).toContain('lacks the scope &quot;webhooks:write&quot;')
    expect(list.text).not.toContain('/webhooks/new')
    const one = await dashboard.get(dashboard.path)
    expect(one.text).toContain('Deliveries')
    expect(one.text).not.toContain('<button class="primary">Save')
    const form = await dashboard.get('/webhooks/new')
    expect(form.status).toBe(403)
    expect(form.text).toContain('which creating a webhook requires.')
    expect(form.text).not.toContain('>Create webhook<')
    const fields = { url: 'https://app.test/other', events: 'batch.failed', active: 'true' }
    expect((await dashboard.post('/webhooks', fields)).status).toBe(403)
    expect((await dashboard.post(`${dashboard.path}/delete`)).status).toBe(403)
    expect((await dashboard.json('/v1/webhooks')).data).toMatchObject({ total: 1 })
  })

  test('are closed to a key without the scope', async () => {
    const dashboard = await endpoint()
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await dashboard.get('/webhooks')
    expect(status).toBe(403)
    expect(text).toContain('webhooks:read')
    expect(text).not.toContain('app.test')
  })

  test('do not include those of another account', async () => {
    const dashboard = await endpoint()
    await dashboard.addAccount('acc_2')
    await dashboard.signIn(await dashboard.addKey({ accountId: 'acc_2' }))
    expect((await dashboard.get('/webhooks')).text).toContain('No webhooks yet')
    for (const path of [dashboard.path, `${dashboard.path}/deliveries/dlv_1`]) {
      expect((await dashboard.get(path)).status).toBe(404)
    }
    const tries = ['', '/switch', '/test', '/secret', '/recover', '/delete'].map(async path => {
      const fields = {
        active: 'false',
        grace: '0',
        since: '2026-06-01T00:00',
        events: 'batch.failed',
      }
      return (
        await dashboard.post(`${dashboard.path}${path}`, { ...fields, url: 'https://app.test/x' })
      ).status
    })
    expect(await Promise.all(tries)).toEqual([404, 404, 404, 404, 404, 404])
  })

  test('render markup in URLs and descriptions as text', async () => {
    const url = `https://app.test/hook?${EVIL.replaceAll(' ', '/')}"onfocus="alert(1)`
    const dashboard = await endpoint({ url, description: EVIL })
    for (const path of ['/webhooks', dashboard.path]) {
      const { text } = await dashboard.get(path)
      expect(text).toContain(HARMLESS)
      expect(text).toContain('&quot;onfocus=&quot;alert(1)')
      expect(text).not.toMatch(/<img|"onfocus/)
    }
  })
})
