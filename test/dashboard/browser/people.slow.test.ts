import { expect, test } from 'vitest'
import { computeTotp } from '../../../src/accounts/people/totp.ts'
import { stage } from './browser.ts'

const set = stage()

/** Wider than a phone. */
const NAME = `Ann ${'Lee'.repeat(25)}`
const PASSWORD = 'correct horse battery'

test('a person is invited, sets a password and a second factor, and signs in with both', async () => {
  const admin = await set.open()
  await admin.go('/people')
  await admin.check('people-first')
  await admin.page.getByLabel('Name').fill(NAME)
  await admin.page.getByLabel('Email address').fill('ann@shop.example')
  await admin.page.getByLabel('Role').selectOption('admin')
  await admin.page.getByRole('button', { name: 'Create a link' }).click()
  await admin.page.getByRole('heading', { name: 'Person invited' }).waitFor()
  await admin.check('people-link')
  const link = (await admin.page.locator('.copyable').textContent()) ?? ''
  expect(link).toContain(`${set.url}/invitation/`)

  // Without JavaScript.
  const visitor = await set.open({ key: null, scripts: false })
  const { page } = visitor
  await page.goto(link)
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByLabel('Repeat the password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set the password and sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()

  const ann = await set.open({ key: null })
  await ann.go('/sign-in?next=/profile')
  await ann.check('sign-in-people')
  await ann.page.getByLabel('Email address').fill('ann@shop.example')
  await ann.page.getByLabel('Password').fill(PASSWORD)
  await ann.page.getByRole('button', { name: 'Sign in', exact: true }).first().click()
  await ann.page.getByRole('heading', { name: 'Your sign-in' }).waitFor()
  await ann.check('profile')
  await ann.page.getByRole('link', { name: 'Set up a second factor' }).click()
  await ann.page.getByRole('img', { name: 'QR code' }).waitFor()
  await ann.check('two-factor')
  const secret = (await ann.page.locator('.copyable').textContent()) ?? ''
  const code = () => computeTotp(secret, Math.floor(Date.now() / 30_000))
  await ann.page.getByLabel('Code', { exact: true }).fill(code())
  await ann.page.getByLabel('Current password').fill(PASSWORD)
  await ann.page.getByRole('button', { name: 'Enable' }).click()
  await ann.page.getByRole('heading', { name: 'Recovery codes' }).waitFor()
  await ann.check('recovery-codes')
  const recovery = (await ann.page.locator('.codes code').first().textContent()) ?? ''
  await ann.page.getByRole('link', { name: 'Done' }).click()
  await ann.check('profile-two-factor')

  await ann.context.clearCookies()
  await ann.go('/sign-in')
  await ann.page.getByLabel('Email address').fill('ann@shop.example')
  await ann.page.getByLabel('Password').fill(PASSWORD)
  await ann.page.getByRole('button', { name: 'Sign in', exact: true }).first().click()
  await ann.page.getByRole('heading', { name: 'Second factor' }).waitFor()
  await ann.check('sign-in-code')
  await ann.page.getByLabel('Code').fill(recovery)
  await ann.page.getByRole('button', { name: 'Sign in' }).click()
  await ann.page.getByRole('heading', { name: 'Overview' }).waitFor()

  await admin.go('/people')
  await admin.check('people')
  await admin.page.getByRole('link', { name: NAME }).click()
  await admin.page.getByRole('heading', { name: 'Remove', exact: true }).waitFor()
  await admin.check('person')
  await admin.page.locator('summary', { hasText: 'Remove person' }).click()
  await admin.page.getByRole('button', { name: 'Yes, remove' }).click()
  await admin.page.getByText(`${NAME} removed.`).waitFor()
  await ann.go('/overview')
  await ann.page.getByRole('heading', { name: 'Sign in' }).waitFor()
}, 300_000)
