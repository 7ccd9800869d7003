import { expect, test } from 'vitest'
import { ApiProblem } from '../../../src/dashboard/api.ts'
import { nonceField } from '../../../src/dashboard/page/form.ts'
import { countedRandom } from '../../support/random.ts'

const problem = (code: ApiProblem['code']) => new ApiProblem(409, { error: 'No.', code })
const numberOf = async (field: ReturnType<typeof nonceField>) =>
  /value="(form_[a-z0-9]{20})"/.exec(String(await field))?.[1]

test('each form has its own nonce, and a rejected form gets a new one', async () => {
  const random = countedRandom()
  const first = await numberOf(nonceField(random))
  const second = await numberOf(nonceField(random))
  const refused = { once: first, problem: problem('invalid_request') }
  const third = await numberOf(nonceField(random, refused))
  expect(new Set([first, second, third, undefined]).size).toBe(4)
})

test('a form that is still in progress keeps its nonce', async () => {
  const once = 'form_aaaaaaaaaaaaaaaaaaaa'
  const under = { once, problem: problem('idempotency_in_progress') }
  expect(await numberOf(nonceField(countedRandom(), under))).toBe(once)
})
