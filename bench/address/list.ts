import { rows } from '../../test/engine/address/rows.ts'

/** An address, and whether it is one; null where it was made and nobody judged it. */
export type Judged = { readonly text: string; readonly good: boolean }

/** Every address of the fixtures: the odd ones, each with its verdict. */
export const odd: readonly Judged[] = [
  ...rows('good').map(([text = '']) => ({ text, good: true })),
  ...rows('bad').map(([text = '']) => ({ text, good: false })),
]

const FIRST = ['anna', 'ben', 'clara', 'david', 'elin', 'farid', 'greta', 'hugo', 'ines', 'jonas']
const LAST = ['moreau', 'holm', 'berg', 'okafor', 'lind', 'sato', 'novak', 'silva', 'kaya', 'weiss']
const DOMAINS = ['gmail.com', 'outlook.com', 'yahoo.co.uk', 'gmx.de', 'northwind-tea.example']

/**
 * A list as people have it: of a hundred addresses ninety are plain, at providers and at companies, four are wrong, and six
 * are long, quoted or international.
 */
export function usualList(length: number): Judged[] {
  return Array.from({ length }, (_, at) => {
    const kind = at % 100
    if (kind < 90) return { text: plain(at), good: true }
    return RARE[kind - 90]?.(at) ?? { text: plain(at), good: true }
  })
}

function plain(at: number): string {
  const first = FIRST[at % FIRST.length]
  const last = LAST[Math.floor(at / 10) % LAST.length]
  // Four of ten at the great providers, the others at a few thousand companies.
  const domain = at % 10 < 4 ? DOMAINS[at % DOMAINS.length] : `company-${mixed(at) % 3_001}.example`
  return `${first}.${last}${at % 97}@${domain}`
}

/** Companies come in no order (Knuth's multiplicative hash). */
const mixed = (at: number) => Math.imul(at, 2_654_435_761) >>> 8

const good = (text: string): Judged => ({ text, good: true })
const bad = (text: string): Judged => ({ text, good: false })
const RARE: readonly ((at: number) => Judged)[] = [
  at => bad(`anna.moreau${at}`),
  at => bad(`anna..moreau${at}@gmail.com`),
  at => bad(`anna moreau${at}@gmail.com`),
  at => bad(`anna${at}@gmail,com`),
  at => good(`${'customer-'.repeat(6)}${at}@${'subsidiary-of-'.repeat(4)}company.example`),
  at => good(`bounce+${at}=anna.moreau=northwind-tea.example@mail.lists.example`),
  at => good(`"anna moreau ${at}"@company.example`),
  at => good(`anna${at}@bücher${at % 50}.example`),
  at => good(`zoë.moreau${at}@company.example`),
  at => good(`anna${at}@xn--bcher-kva.example`),
]
