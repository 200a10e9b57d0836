-- held → available → (taken by another), the first half: expires the holds in seats that were just taken from them.
-- The caller has updated the seats; their rows are locked by this transaction.
CREATE OR REPLACE FUNCTION end_lapsed_holds(
  p_org uuid, p_now timestamptz,
  m_event uuid[], m_ordinal integer[], m_zone smallint[], m_version integer[], m_hold uuid[], m_hold_type text[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_n integer := cardinality(m_hold);
BEGIN
  UPDATE holds h SET status = 'expired', ended_at = p_now
  WHERE h.organization_id = p_org AND h.id = ANY (m_hold) AND h.status = 'active';
  PERFORM record_moves(p_org, 'expire', p_now, 'SYSTEM', NULL, NULL, NULL, NULL, NULL, 'taken over by the next buyer',
    m_event, m_ordinal, m_zone, array_fill(1, ARRAY[v_n]),
    array_fill('held'::seat_state, ARRAY[v_n]), array_fill('available'::seat_state, ARRAY[v_n]),
    m_version, m_hold_type, m_hold, array_fill(NULL::text, ARRAY[v_n]));
END $$;
