/**
 * The terms of a language by concept, separated by commas. A term is one or two words in lower case
 * without accents; `*` at its end stands for any ending.
 */
export type Lexicon = { readonly [Name in Concept]?: string }

/** The words of a sentence (see `sentence.ts`). `noise` is left out of it. */
export type Concept =
  // What a reply is about: the recipient, its domain, or our side.
  | 'box'
  | 'person'
  | 'domain'
  | 'sender'
  | 'your'
  | 'you'
  | 'ip'
  | 'client'
  | 'helo'
  | 'dns'
  | 'spf'
  | 'part'
  | 'command'
  | 'host'
  | 'server'
  | 'mail'
  | 'list'
  // What it says about it.
  | 'missing'
  | 'exist'
  | 'closed'
  | 'active'
  | 'blocked'
  | 'refused'
  | 'allowed'
  | 'fail'
  | 'full'
  | 'over'
  | 'space'
  | 'limit'
  | 'size'
  | 'many'
  | 'attempt'
  | 'moved'
  | 'require'
  | 'own'
  // What is done.
  | 'send'
  | 'receive'
  | 'use'
  | 'serve'
  | 'login'
  | 'lookup'
  | 'deliver'
  | 'relay'
  | 'left'
  // Why we are refused.
  | 'spam'
  | 'policy'
  | 'blocklist'
  | 'greylist'
  | 'tls'
  | 'auth'
  | 'later'
  | 'hour'
  | 'time'
  | 'conn'
  // Small words.
  | 'not'
  | 'no'
  | 'never'
  | 'noone'
  | 'nowhere'
  | 'such'
  | 'from'
  | 'to'
  | 'for'
  | 'here'
  | 'outside'
  | 'state'
  | 'company'
  | 'other'
  | 'noise'

/** English words that servers misspell, and that no other word resembles. */
export const OFTEN_MISSPELLED: Lexicon = {
  box: 'recipient, recipients, receiver, mailbox, account, address, username',
  missing: 'unknown, invalid, unavailable, nonexistent, undeliverable',
  exist: 'exist, exists, existing, available, recognized, registered',
}

export const ENGLISH: Lexicon = {
  box: 'user, users, your recipient, username*, userid*, user id, user ids, user name, mailbox name, account name, recipient name, recipient*, rcpt, rcpts, mailbox*, mbox*, mail box, mail boxes, mail drop, maildrop*, account, accounts, accountname*, address*, alias*, addressee*, inbox*, in box, mailfolder*, mail folder, maildir*, subscriber*, subscription*, receiver*, local part, localpart*, box, boxes, usr, usre, uesr',
  person:
    'person, persons, people, customer*, employee*, member*, anyone, anybod*, somebod*, contact person, individual*, staff',
  domain: 'domain, domains, domainname*, domainpart*',
  sender:
    'sender*, originator*, mailfrom*, return path, reverse path, return address, bounce address, reply address, reply mailbox, envelope from, from address, from domain, from header, header from, reply to, callback*, bounces, bounce message*, postmaster verification, origin, author, authors, submitter*, errors to, envelope address',
  your: 'your, yours',
  you: 'you',
  ip: 'ip, ips, ipv4, ipv6, network*, netblock*, subnet*, country, region, isp, provider*, asn, geo, geoip',
  client:
    'client*, connecting host, connecting server, connecting ip, remote host, peer, peers, source host, source address, network address, sending host, sending server, sending mta, browser',
  helo: 'hello name, address literal, domain literal, helo*, ehlo*, hostname*, host name*, ptr, rdns, reverse, fqdn',
  dns: 'dns, mx, aaaa, nameserver*, address record*',
  spf: 'spf*, domainkey*, organizational domain, signing domain, d domain, dkim*, dmarc*, senderid, sender policy, spoof*, forged, forgery, impersonat*, batv, backscatter',
  part: 'certificat*, header*, attachment*, url, urls, link, links, link address, web address, file, files, key, literal, user agent, message id',
  command: 'command*, parameter*, argument*, option*, extension*, keyword*',
  host: 'host, hosts',
  server:
    'server*, mailbox server, mailbox store, message store, mail store, system, mta, exchanger*, gateway*, site, machine',
  mail: 'mail, mails, replies, email*, e mail, e mails, message*, mailing, messages, letter*, correspondence',
  list: 'list, lists, gal, on file, mapping, mappings, record*, table*, directory, database, ldap, book, map, catalog*, registry, index, dictionary, file list',
  missing:
    'unknown*, invalid*, fake, nonexist*, non exist*, nonexistent, nonexistant, existant, unavailable, unrecognized, unrecognised, unregistered, undeliverable, unrouteable, unroutable, unresolvable, unreachable, unallocated, unassigned, unprovisioned, bad, bogus, wrong, illegal, incorrect, missing, misspelled, mistyped, obsolete, undefined, vacant, fictitious, imaginary, false, malformed, ambiguous, unverified, unvalidated',
  exist:
    'exist, exists, exits, real, correspond, corresponds, existed, existing, found, find, locate, located, known, know, knows, valid, recognized, recognised, recognize, registered, present, available, listed, deliverable, reachable, routable, match, matches, matched, result*, entry, entries, provisioned, defined, assigned, allocated, resolve, resolved, identified, appear, appears, ok, correct, acceptable, mapped, vaild, created, usable, legitimate',
  closed:
    'disabled, idle for, unmonitored, deactivated, de activated, inactivated, suspended, suspend, suspension, inactive, inactivity, dormant, frozen, discontinued, archived, on hold, locked, retired, closed, expired, terminated, canceled, cancelled, deleted, removed, abandoned, decommissioned, deprovisioned, de provisioned, unused, stale, ceased, quarantined, deceased, parked, revoked, withdrawn, shut down, opted out, hibernated, defunct, turned off, switched off, purged, ended, disconnected, dead, lapsed, stopped, deletion',
  active: 'active, in service, activity, activated, enabled, operational, functional, alive',
  blocked: 'blocked, banned, barred',
  refused:
    'forbidden, block, blocks, blocking, rejected, reject, rejects, refused, refuse, refuses, denied, deny, denies, declined, disallowed, prohibited, unauthorized, unauthorised, unacceptable, unwanted, unwelcome',
  allowed:
    'allowed, allow, allows, permitted, permit, accepted, authorized, authorised, welcome, entitled, able to',
  fail: 'fail, fails, failed, failing, failure*, unable, error, unsuccessful',
  full: 'full, stuffed, exhausted, used up, overquota, overfull, overflow*, overdrawn, depleted, filled, run out, ran out, out of',
  over: 'over, exceed*, exceding, exeeded, exeed*, reached, above, beyond, hit, violat*, used all, maxed',
  space:
    'quota*, storage, space, room, capacity, disk, disc, diskspace, allocation, megabyte*, inode*',
  limit: 'limit*, maximum, max, threshold*, allowance, rate, rates, ceiling',
  size: 'too large, too big, size, sized, large, big, larger, too long, length',
  attempt: 'attempt*, errors, unknowns, tries, rejections, misses',
  many: 'many, to many, keep, keeps, repeated*, too many, too much, excessive*, excess, number, numbers, volume*, too often, too frequent*, too fast, too quickly',
  moved: 'moved, migrated, relocated, changed, replaced, new address, transferred',
  require: 'require*, required, need, needs, needed, must, mandatory, please use, enforce*',
  own: 'belong*, owned, owner*, ours, our, hosted by, property',
  send: 'send, sending, sends, sent, submit*, submission, outgoing, outbound, transmit*, originat*',
  receive:
    'receive, receives, receiving, received, accept, accepts, accepting, take, takes, taking, get, gets',
  use: 'use, used, uses, using, in use',
  serve:
    'serve, serves, served, serviced, hosted, hosting, handle, handles, handled, responsible, administer*, managed, configured, setup, set up, service',
  login:
    'login, logins, log in, logged in, logged on, logged into, log on, log into, logged, logon, signed in, sign in, accessed, access the, poped, popped, checked, opened, visited, read mail, used since',
  lookup:
    'lookup, lookups, look up, search, query, queries, searched, resolution, verification, verify, callout, expansion, validation, verified, validated, determined',
  deliver:
    'deliver, delivered, delivery, deliveries, destination*, target*, location, place, forward, forwarding, route, routed, routing',
  relay: 'relay, relays, relayed, relaying, rcpthosts, rcpthost, openrelay',
  left: 'left, leave, leaves, works, work, employed, employs, departed, quit, resigned, gone, former',
  spam: 'spam, spammy, spamm*, spamtrap*, ube, uce, bulk, junk, junkmail, unsolicited, phish*, virus*, malware, malicious, suspicious, suspected, antispam',
  policy: 'policy, policies, new domain, domain age, young domain',
  blocklist:
    'real time, realtime, blacklist*, black, black list*, blocklist*, block list*, denylist*, deny list*, rbl, dnsbl, rblsmtpd, spamhaus, spamcop, sorbs, barracuda, reputation, abuse, abusive, directory attack*, whitelist*, white list*, allowlist*, allow list*, welcomelist*, safelist*, safe list*',
  greylist: 'greylist*, graylist*, grey list*, gray list*',
  tls: 'tls, ssl, starttls, requiretls, encrypt*, unencrypted, secure connection, secure session, secure channel',
  auth: 'auth, authentication, authenticat*, unauthenticat*, password*, credential*',
  later:
    'later, moment, right now, this time, temporar*, try again, retry again, send again, resend, retry, busy, try later, soon, defer*, tempfail, maintenance',
  hour: 'today, hour, hours, hourly, day, daily, minute*, per hour, per day, seconds',
  time: 'days, months, month, weeks, years, year, long time, long, time, period, ever, yet, since, recently, prolonged, extended, last',
  conn: 'connection*, connect, connecting, concurrent, simultaneous, session, sessions',
  not: 'not, cannot, can not, dont, doesnt, dosnt, dosent, doesn, isnt, wasnt, hasnt, cant, couldnt, wont, arent, no longer, nolonger, neither, nor, n t, ceased to, unable to, failed to, could not, hardly, not longer',
  no: 'no, none, nothing, too little, insufficient, without, zero, lacks, lack, hasn',
  never: 'never',
  noone: 'nobod*, no one, noone, userunknown, unknownuser',
  nowhere: 'nowhere, no place',
  such: 'such, match for, matching',
  from: 'from',
  to: 'to, towards',
  for: 'for',
  outside: 'outside*, external*, stranger*',
  state: 'state, status',
  here: 'here, us, we, local, locally',
  company: 'company, firm, organization, organisation, school, university, business, employer',
  other: 'other, another, different',
  noise:
    's, want to, trying to, tried to, to reach, a, an, the, is, are, was, were, be, been, being, has, have, had, having, do, does, did, can, could, will, would, shall, should, may, might, it, its, that, this, these, those, there, and, or, of, at, on, in, by, with, as, if, so, but, also, any, all, some, one, ones, sorry, please, currently, permanently, presently, here is, his, her, their, them, they, he, she, i, im, very, already, just, due to, due, because, rcpt to, in reply, no reply, read only, create, requested, action, taken, said, mailer, virtual',
}
