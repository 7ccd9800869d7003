import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { CLIENT, startOidcProvider } from '../../support/oidc-provider.ts'
import { stage, type Visitor } from './browser.ts'

const PASSWORD = 'correct horse battery'

const port = await freePort()
const url = `http://127.0.0.1:${port}`
const provider = await startOidcProvider(`${url}/sign-in/oidc/callback`, 'localhost')
const set = stage({ args: ['--listen', `127.0.0.1:${port}`] })
writeFileSync(
  join(set.home, 'ev.config.json'),
  JSON.stringify({
    'oidc-issuer': provider.issuer,
    'oidc-client-id': CLIENT.id,
    'oidc-client-secret': CLIENT.secret,
    'oidc-name': 'Example Login',
    'oidc-allow-ranges': '127.0.0.1',
  }),
)

let admin: Visitor | null = null

/** Invites a person; returns the link. */
async function invite(name: string, email: string): Promise<string> {
  // Once people are invited, the form of the key is folded.
  admin ??= await set.open()
  const { page, go } = admin
  await go('/people')
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Email address').fill(email)
  await page.getByRole('button', { name: 'Create a link' }).click()
  return (await page.locator('.copyable').textContent()) ?? ''
}

test('a person joins at the link and signs in at another site, also without JavaScript', async () => {
  provider.account = { sub: 'u-1', email: 'ann@shop.example', email_verified: true }
  const link = await invite('Ann Lee', 'ann@shop.example')
  const ann = await set.open({ key: null })
  await ann.page.goto(link)
  await ann.check('invitation-with-provider')
  await ann.page.getByRole('link', { name: 'Continue with Example Login' }).click()
  await ann.page.getByRole('heading', { name: 'Overview' }).waitFor()

  for (const scripts of [true, false]) {
    const again = await set.open({ key: null, scripts })
    await again.page.goto(`${url}/sign-in?next=/profile`)
    if (scripts) await again.check('sign-in-with-provider')
    await again.page.getByRole('link', { name: 'Sign in with Example Login' }).click()
    await again.page.getByRole('heading', { name: 'Your sign-in' }).waitFor()
    expect(new URL(again.page.url()).pathname).toBe('/profile')
    if (scripts) await again.check('profile-with-provider')
  }
}, 300_000)

test('a person with a password links the provider', async () => {
  const link = await invite('Bob Ray', 'bob@shop.example')
  const bob = await set.open({ key: null })
  await bob.page.goto(link)
  await bob.page.getByLabel('New password').fill(PASSWORD)
  await bob.page.getByLabel('Repeat the password').fill(PASSWORD)
  await bob.page.getByRole('button', { name: 'Set the password and sign in' }).click()
  await bob.page.getByRole('heading', { name: 'Overview' }).waitFor()
  await bob.go('/profile')
  await bob.check('profile-link')
  await bob.page.locator('#link-password').fill(PASSWORD)
  await bob.page.getByRole('button', { name: 'Link Example Login' }).click()
  provider.account = { sub: 'u-2', email: 'bob@shop.example', email_verified: true }
  await bob.page.getByRole('link', { name: 'Continue to Example Login' }).click()
  await bob.page.getByText('You can now sign in with Example Login.').waitFor()
  await bob.check('profile-linked')
}, 300_000)

test('a link of another site leads to the sign-in page', async () => {
  const { page } = await set.open({ key: null })
  await page.goto(`${provider.issuer}/elsewhere`)
  await page.evaluate(`location.href = '${url}/sign-in/oidc'`)
  await page.getByRole('link', { name: 'Sign in with Example Login' }).waitFor()
}, 300_000)
