import { describe, expect, test } from 'vitest'
import { createPasswordHasher, findPasswordFault } from '../../../src/accounts/people/password.ts'
import { systemRandom } from '../../../src/platform/random.ts'

const CHEAP = { logN: 4, r: 1, p: 1 }

describe('a password', () => {
  test('is hashed with the parameters of OWASP and a salt of its own', async () => {
    const passwords = createPasswordHasher(systemRandom)
    const stored = await passwords.hash('correct horse battery')
    expect(stored).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$[\w+/]{34}\$[\w+/]{43}$/)
    expect(await passwords.hash('correct horse battery')).not.toBe(stored)
    expect(await passwords.verify('correct horse battery', stored)).toBe(true)
    expect(await passwords.verify('Correct horse battery', stored)).toBe(false)
  })

  test('that was hashed with other parameters is still verified', async () => {
    const stored = await createPasswordHasher(systemRandom, CHEAP).hash('correct horse battery')
    const passwords = createPasswordHasher(systemRandom, { logN: 5, r: 2, p: 1 })
    expect(await passwords.verify('correct horse battery', stored)).toBe(true)
    expect(await passwords.verify('wrong horse battery', stored)).toBe(false)
  })

  test('is the same in every Unicode normalization', async () => {
    const passwords = createPasswordHasher(systemRandom, CHEAP)
    expect(await passwords.verify('pássword långt', await passwords.hash('pássword långt'))).toBe(
      true,
    )
  })

  test('of nobody is never right', async () => {
    const passwords = createPasswordHasher(systemRandom, CHEAP)
    for (const stored of [null, '', 'x', '$scrypt$']) {
      expect(await passwords.verify('', stored)).toBe(false)
    }
  })

  test('is refused while 32 others wait', async () => {
    const passwords = createPasswordHasher(systemRandom, CHEAP)
    const waiting = Array.from({ length: 33 }, () => passwords.hash('correct horse battery'))
    // The limiter starts the first one in a microtask.
    await Promise.resolve()
    await Promise.resolve()
    expect(passwords.isOverloaded()).toBe(true)
    await Promise.all(waiting)
    expect(passwords.isOverloaded()).toBe(false)
  })

  test.each([
    ['correct horse', null],
    ['ann.lee.in.spring', null],
    ['short', 'has 5 characters'],
    ['x'.repeat(201), 'has 201 characters'],
    ['abababababab', 'repeats'],
    ['Ann@Shop.Example!', 'email address'],
    // On the list, in any case and Unicode form.
    ['123456789qwe', 'many people use'],
    ['1q2w3e4r5t6y', 'many people use'],
    ['qwerty123456', 'many people use'],
    ['QWERTY123456', 'many people use'],
    ['ｑｗｅｒｔｙ123456', 'many people use'],
    ['qwerty1234567 and a phrase', null],
  ])('%j as a new one', async (password, fault) => {
    const found = await findPasswordFault(password, 'ann@shop.example')
    if (fault === null) expect(found).toBeNull()
    else expect(found).toContain(fault)
  })
})
