import { isListed } from './name-list.ts'

/** Mailboxes that firms number: `info2`, `sales1`. Only these, because names are numbered too. */
const NUMBERED =
  /^(info|sales|support|admin|contact|office|marketing|billing|help|helpdesk|service|webmaster|team|reception|booking|orders)\d{1,2}$/
/** Machines that send under many names: `alerts-noreply`, `no-reply-jobs`, `bounces`; RFC 2142 §8 `staff-request`. */
const MACHINE =
  /(?:^|[._-])(?:no[._-]?reply|do[._-]?not[._-]?reply|mailer-daemon)(?:[._-]|$)|.-request$|^owner-./
/** Below this a name without its dots says too little: `al.la` is a person. */
const SQUEEZED_LENGTH_MIN = 8

/** Whether a mailbox belongs to a task, not to a person; whole words only, case and `+tag` aside. */
export function isRole(local: string, more: ReadonlySet<string>): boolean {
  const name = local.toLowerCase().split('+', 1)[0] ?? ''
  const knows = (word: string) => more.has(word) || isListed('role', word)
  if (knows(name) || MACHINE.test(name) || NUMBERED.test(name)) return true
  const end = name.search(/[._-]/)
  if (end < 0) return false
  const squeezed = name.replace(/[._-]/g, '')
  if (squeezed.length >= SQUEEZED_LENGTH_MIN && knows(squeezed)) return true
  if (knows(name.replace(/[._]/g, '-'))) return true
  return knows(name.slice(0, end)) && name.split(/[._-]/).every(knows)
}
