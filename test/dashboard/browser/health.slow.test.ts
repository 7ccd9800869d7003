import { expect, test } from 'vitest'
import { stage } from './browser.ts'

const REFUSAL =
  '554 5.7.1 {client} <img src=x onerror=alert(1)> blocked using a list, see https://lists.example/why'
const set = stage({
  scenario: {
    mailboxes: ['ann'],
    domains: {
      'polite.test': { mx: [[10, 'mx.polite.test']] },
      'evil.test': { mx: [[10, 'mx.evil.test']] },
    },
    hosts: {
      'mx.polite.test': { behavior: 'polite' },
      'mx.evil.test': { behavior: 'polite', rules: [{ on: 'CONNECT', reply: REFUSAL }] },
    },
  },
})
/** One address is rejected, and enough are skipped for an alert. */
const ADDRESSES = Array.from({ length: 21 }, (_, n) => `user${n}@evil.test`)

async function verify(email: string): Promise<unknown> {
  const answer = await fetch(`${set.url}/v1/verify/single`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${set.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ email }),
  })
  return answer.json()
}

test('check results appear as they complete, and a block is shown there and above verifications', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/doctor')
  await page.getByText('No mail server was probed in the last two hours.').waitFor()
  await page.getByText('Fix the failures before verifying addresses').waitFor()
  // The simulator does not resolve the reference hosts, so the doctor dials nothing outside this
  // machine.
  await page
    .getByRole('row', { name: 'Port 25' })
    .getByText('the mail servers were not found in the DNS, so none was contacted')
    .waitFor()
  // The loaded page shows the change.
  await verify('ann@polite.test')
  for (const email of ADDRESSES) await verify(email)
  const refused = page.getByRole('row', { name: 'evil.test' })
  await refused.getByText('<img src=x onerror=alert(1)>').waitFor()
  await refused.getByText('20 addresses so far').waitFor()
  expect(await refused.getByRole('link', { name: 'lists.example' }).getAttribute('rel')).toContain(
    'noopener',
  )
  await page.getByRole('row', { name: 'polite.test' }).getByText('normal').waitFor()
  await page.getByRole('button', { name: 'Run checks' }).click()
  await page.getByText('less than a minute ago').waitFor()
  await visitor.check('health')
  await visitor.go('/verify')
  const alert = page.getByText(
    /evil\.test has been blocking this service since .*: 20 addresses are unknown/,
  )
  await alert.waitFor()
  await page.getByRole('button', { name: 'Dismiss' }).click()
  await visitor.go('/lists')
  expect(await alert.count()).toBe(0)
})
