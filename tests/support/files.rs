//! The configuration that tests have of their own, so that the shipped values may be edited without
//! breaking any: three points for a win, one for a draw, no lead, four players and two referees
//! listed, and little patience between attempts. Only the registry of games is the shipped one, since
//! it must agree with the games. `TestLeague::new` writes the files and then makes the edits of its
//! test.

/// Name and text of every file.
pub const FILES: [(&str, &str); 6] = [
    (
        "system.json",
        r#"{"schema_version": "1.0.0", "system_id": "tests", "protocol_version": "league.v2",
        "default_league_id": "league_2025_even_odd",
        "network": {"base_host": "localhost", "default_league_manager_port": 8000,
            "default_referee_port_range": [8001, 8010], "default_player_port_range": [8101, 8199]},
        "security": {"enable_auth_tokens": true, "token_length": 32, "token_ttl_hours": 24},
        "timeouts": {"register_referee_timeout_sec": 10, "register_player_timeout_sec": 10,
            "game_join_ack_timeout_sec": 5, "move_timeout_sec": 30, "game_over_timeout_sec": 5,
            "generic_response_timeout_sec": 10},
        "retry_policy": {"max_retries": 3, "base_delay_sec": 0.1, "backoff_strategy": "exponential"},
        "limits": {"max_message_bytes": 10240}}"#,
    ),
    (
        "agents/agents_config.json",
        r#"{"schema_version": "1.0.0", "last_updated": "2025-01-15T10:00:00Z",
        "league_manager": {"display_name": "Central League Manager", "endpoint": "http://localhost:8000/mcp",
            "version": "1.0.0"},
        "referees": [
            {"referee_id": "REF01", "display_name": "Referee Alpha", "endpoint": "http://localhost:8001/mcp", "active": true,
                "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "max_concurrent_matches": 2},
            {"referee_id": "REF02", "display_name": "Referee Beta", "endpoint": "http://localhost:8002/mcp", "active": true,
                "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "max_concurrent_matches": 2}],
        "players": [
            {"player_id": "P01", "display_name": "Agent Alpha", "default_endpoint": "http://localhost:8101/mcp",
                "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "active": true},
            {"player_id": "P02", "display_name": "Agent Beta", "default_endpoint": "http://localhost:8102/mcp",
                "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "active": true},
            {"player_id": "P03", "display_name": "Agent Gamma", "default_endpoint": "http://localhost:8103/mcp",
                "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "active": true},
            {"player_id": "P04", "display_name": "Agent Delta", "default_endpoint": "http://localhost:8104/mcp",
                "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "active": true}]}"#,
    ),
    (
        "leagues/league_2025_even_odd.json",
        r#"{"schema_version": "1.0.0", "league_id": "league_2025_even_odd", "display_name": "Even/Odd League 2025",
        "game_type": "even_odd", "status": "ACTIVE", "created_at": "2025-01-01T00:00:00Z",
        "scoring": {"win_points": 3, "draw_points": 1, "loss_points": 0, "technical_loss_points": 0,
            "tiebreakers": ["wins", "head_to_head", "draws"]},
        "scheduling": {"format": "round_robin", "matches_per_round": 2, "cycles": 1, "round_announcement_lead_sec": 0},
        "participants": {"min_players": 2, "max_players": 100}}"#,
    ),
    (
        "games/games_registry.json",
        include_str!("../../config/games/games_registry.json"),
    ),
    (
        "defaults/referee.json",
        r#"{"display_name": "Referee", "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "max_concurrent_matches": 2}"#,
    ),
    (
        "defaults/player.json",
        r#"{"display_name": "Agent", "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"]}"#,
    ),
];
