import { expect, test } from 'vitest'
import { signIn, stage } from './browser.ts'

const set = stage()

test('sign in, change the theme, list sessions, sign out', async () => {
  const visitor = await set.open({ key: null })
  const { page } = visitor
  await visitor.go('/sessions')
  expect(page.url()).toBe(`${set.url}/sign-in?next=%2Fsessions`)
  await visitor.check('sign-in')
  await page.getByLabel('API key').fill(set.key)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/sessions')
  await visitor.check('sessions')
  await page.getByText('default').click()
  await page.getByRole('button', { name: 'dark' }).click()
  await page.locator('html[data-theme="dark"]').waitFor()
  await page.getByText('default').click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL('**/sign-in')
  await visitor.go('/sessions')
  expect(page.url()).toContain('/sign-in')
})

test('a session that is ended in another browser ends at once', async () => {
  const [one, other] = [await set.open(), await set.open()]
  await one.go('/sessions')
  await one.page.locator('summary', { hasText: 'End' }).click()
  await one.page.getByLabel('Your API key').fill(set.key)
  await one.check('sessions-end')
  await one.page.getByRole('button', { name: 'End the session' }).click()
  await one.page.getByText('Session ended.').waitFor()
  await other.go('/sessions')
  expect(other.page.url()).toContain('/sign-in')
})

test('scripts can read neither key nor cookie', async () => {
  const { page, context } = await set.open({ key: null })
  await signIn(page, set.key)
  expect(await page.evaluate('document.cookie')).not.toContain('ev_session')
  const [cookie] = await context.cookies()
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Strict' })
})
