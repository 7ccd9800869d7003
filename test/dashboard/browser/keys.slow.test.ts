import { expect, test } from 'vitest'
import { stage } from './browser.ts'

const set = stage()

/** Returns the status of a request with a key. */
const statusWith = async (key: string) => {
  const headers = { Authorization: `Bearer ${key}` }
  return (await fetch(`${set.url}/v1/limits`, { headers })).status
}

test('a key is created and used, changed, rotated and revoked', async () => {
  const visitor = await set.open()
  const { page, context } = visitor
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await visitor.go('/keys')
  await visitor.check('keys-first')
  await page.getByRole('link', { name: 'New key' }).first().click()
  await page.getByLabel('Name').fill('Shop, sign-up form')
  await page.getByLabel('account:read').check()
  await page.getByLabel('Allowed IP addresses').fill('127.0.0.1, nonsense')
  await page.keyboard.press('Enter')
  await page.getByText('"Allowed IP addresses" is "nonsense"').waitFor()
  // The browser logs a 400 response as an error.
  visitor.faults.length = 0
  await visitor.check('keys-new')
  expect(await page.getByLabel('Name').inputValue()).toBe('Shop, sign-up form')
  await page.getByLabel('Allowed IP addresses').fill('127.0.0.1')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('heading', { name: 'Key created' }).waitFor()
  const key = (await page.locator('.copyable').textContent()) ?? ''
  expect(await statusWith(key)).toBe(200)
  await page.getByRole('button', { name: 'Copy' }).first().click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key)
  // The screenshot must not show a key, even a revoked one.
  await page.evaluate(
    "document.querySelector('.copyable').textContent = 'ev_live_' + '0'.repeat(38)",
  )
  await visitor.check('keys-shown-once')

  await page.getByRole('link', { name: 'I have saved it' }).click()
  await visitor.check('keys')
  await page.getByRole('link', { name: 'Shop, sign-up form' }).click()
  await page.getByLabel('account:read').uncheck()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('The changes apply from its next request').waitFor()
  await expect.poll(() => statusWith(key)).toBe(403)

  await page.getByRole('link', { name: 'Shop, sign-up form' }).click()
  await visitor.check('keys-change')
  await page.getByLabel('Old secret').selectOption('expires immediately')
  await page.getByRole('button', { name: 'Rotate key' }).click()
  await page.getByRole('heading', { name: 'New secret' }).waitFor()
  const next = (await page.locator('.copyable').textContent()) ?? ''
  await expect.poll(() => statusWith(key)).toBe(401)
  expect(await statusWith(next)).toBe(403)

  await page.getByRole('link', { name: 'I have saved it' }).click()
  await page.getByRole('link', { name: 'Shop, sign-up form' }).click()
  await page.getByText('Revoke key', { exact: true }).click()
  await page.getByRole('button', { name: 'Yes, revoke key' }).click()
  await page.getByText('revoked. It no longer works').waitFor()
  await expect.poll(() => statusWith(next)).toBe(401)
})

test('revoking the key of the session shows a warning and signs out', async () => {
  const headers = { Authorization: `Bearer ${set.key}`, 'Content-Type': 'application/json' }
  const name = 'mine <img src=x onerror=alert(1)>'
  const body = JSON.stringify({ name, scopes: ['dashboard', 'keys:write'] })
  const made = await fetch(`${set.url}/v1/keys`, { method: 'POST', headers, body })
  const { data } = (await made.json()) as { data: { key: string } }
  const { page, faults } = await set.open({ key: data.key })
  await page.goto('/keys')
  await page.getByRole('link', { name }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
  expect([await page.locator('main img').count(), faults]).toEqual([0, []])
  await page.getByText('Revoke key', { exact: true }).click()
  await page.getByText('you will be signed out').waitFor()
  await page.getByRole('button', { name: 'Yes, revoke key' }).click()
  await page.waitForURL('**/sign-in')
  await page.goto('/keys')
  expect(page.url()).toContain('/sign-in')
})
