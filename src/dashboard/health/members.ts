import { html } from 'hono/html'
import type { Member } from '../../store/cluster/members.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { duration, time } from '../page/text.ts'

/** The processes that share the database; nothing where it is one that cannot be shared. */
export function membersTable(members: readonly Member[]): Html {
  if (members.length === 0) return NOTHING
  return html`
    <section>
      <h2>Members</h2>
      <div class="scroll"><table>
        <thead><tr>
          <th scope="col">Member</th><th scope="col">Does</th><th scope="col">Egresses</th>
          <th scope="col">Version</th><th scope="col">Since</th><th scope="col">Last heard of</th>
        </tr></thead>
        <tbody>${members.map(
          one => html`
            <tr>
              <th scope="row">${one.name}</th><td>${ROLES[one.role]}</td>
              <td>${one.egresses.join(', ')}</td><td>${one.version}</td>
              <td>${time(one.joinedAt)}</td><td>${duration(Math.max(0, one.quietMs))} ago</td>
            </tr>`,
        )}</tbody>
      </table></div>
      <p><small>All processes that work on this database. What one of them had in hand is given to the others when it
      has not been heard of for ten seconds, and it stands here no longer then.</small></p>
    </section>`
}

const ROLES = {
  serve: 'answers and works',
  worker: 'works',
} as const satisfies Record<Member['role'], string>
