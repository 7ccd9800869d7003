import { rows } from '../../test/engine/address/rows.ts'

/** A text, and whether it is a valid address. */
export type LabeledAddress = { readonly text: string; readonly good: boolean }

/** All addresses of the fixtures. */
export const unusual: readonly LabeledAddress[] = [
  ...rows('good').map(([text = '']) => ({ text, good: true })),
  ...rows('bad').map(([text = '']) => ({ text, good: false })),
]

const FIRST = ['anna', 'ben', 'clara', 'david', 'elin', 'farid', 'greta', 'hugo', 'ines', 'jonas']
const LAST = ['moreau', 'holm', 'berg', 'okafor', 'lind', 'sato', 'novak', 'silva', 'kaya', 'weiss']
const DOMAINS = ['gmail.com', 'outlook.com', 'yahoo.co.uk', 'gmx.de', 'northwind-tea.example']

/**
 * A typical list: of a hundred addresses, ninety are plain, four are malformed, and six are long,
 * quoted or international.
 */
export function typicalList(length: number): LabeledAddress[] {
  return Array.from({ length }, (_, n) => {
    const kind = n % 100
    if (kind < 90) return { text: plain(n), good: true }
    return RARE[kind - 90]?.(n) ?? { text: plain(n), good: true }
  })
}

function plain(n: number): string {
  const first = FIRST[n % FIRST.length]
  const last = LAST[Math.floor(n / 10) % LAST.length]
  // Four of ten are at large providers, the others at a few thousand companies.
  const domain = n % 10 < 4 ? DOMAINS[n % DOMAINS.length] : `company-${mixed(n) % 3_001}.example`
  return `${first}.${last}${n % 97}@${domain}`
}

/** Spreads the companies (Knuth's multiplicative hash). */
const mixed = (n: number) => Math.imul(n, 2_654_435_761) >>> 8

const good = (text: string): LabeledAddress => ({ text, good: true })
const bad = (text: string): LabeledAddress => ({ text, good: false })
const RARE: readonly ((n: number) => LabeledAddress)[] = [
  n => bad(`anna.moreau${n}`),
  n => bad(`anna..moreau${n}@gmail.com`),
  n => bad(`anna moreau${n}@gmail.com`),
  n => bad(`anna${n}@gmail,com`),
  n => good(`${'customer-'.repeat(6)}${n}@${'subsidiary-of-'.repeat(4)}company.example`),
  n => good(`bounce+${n}=anna.moreau=northwind-tea.example@mail.lists.example`),
  n => good(`"anna moreau ${n}"@company.example`),
  n => good(`anna${n}@bücher${n % 50}.example`),
  n => good(`zoë.moreau${n}@company.example`),
  n => good(`anna${n}@xn--bcher-kva.example`),
]
