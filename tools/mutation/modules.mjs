/**
 * The modules whose tests are measured by mutation: the files that are mutated, the test files that
 * belong to them, and the lowest score (% of the mutants that a test detects).
 *
 * @type {Readonly<Record<string, { mutate: string[], tests: string[], floor: number }>>}
 */
export const MODULES = {
  verdict: {
    mutate: ['src/engine/verdict/{judge,reason,action,verdict}.ts'],
    tests: ['test/engine/verdict/{judge,action,verdict,reason}.test.ts'],
    floor: 90,
  },
  reply: {
    mutate: ['src/engine/smtp/classify-reply.ts', 'src/engine/smtp/reply-rules/{codes,grammar}.ts'],
    tests: ['test/engine/smtp/{classify-reply,sentence}.test.ts'],
    floor: 90,
  },
  credits: {
    mutate: ['src/accounts/credits/{ledger-entries,reservations,usage-ledger}.ts'],
    tests: ['test/accounts/credits/usage-ledger.test.ts'],
    floor: 90,
  },
  retry: {
    mutate: ['src/engine/probe/retry-policy.ts'],
    tests: ['test/engine/probe/retry-policy.test.ts'],
    floor: 90,
  },
  rates: {
    mutate: ['src/engine/rate-control/{rules,controller,limit-table}.ts'],
    tests: ['test/engine/rate-control/*.test.ts'],
    floor: 90,
  },
  address: {
    mutate: ['src/engine/address/{address,domain}.ts'],
    tests: ['test/engine/address/{address,domain,placeholder}.test.ts'],
    floor: 90,
  },
  keys: {
    mutate: ['src/accounts/{key,key-rights}.ts'],
    tests: ['test/accounts/{key,key-rights,key-restrictions}.test.ts'],
    floor: 90,
  },
  signing: {
    mutate: [
      'src/webhooks/signature.ts',
      'src/client/webhook-signature.ts',
      'src/accounts/signed-link.ts',
    ],
    tests: [
      'test/webhooks/signature.test.ts',
      'test/accounts/signed-link.test.ts',
      'test/client/webhook-signature.test.ts',
    ],
    floor: 90,
  },
}
